"""Request bodies fill neither disk nor memory of the web server."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework.test import APIClient

from accounts_app.policy import Role
from slicewise_server.stack.services import Services
from tests import factories
from tests.attacks.web_server import exchange, request, web_server
from tests.clients import api_client_of

LIMIT = 2_621_440
PAGES = ("/sign-in/", "/admin/login/", "/", "/nowhere/")
OPERATIONS = ("/api/v1/tokens/", "/api/v1/backfills/", "/api/v1/health/", "/api/v1/nowhere/")


@pytest.mark.django_db
@pytest.mark.parametrize("page", ["/sign-in/", "/admin/login/"])
def test_a_file_is_refused_by_pages(stranger: Client, page: str, settings: Any) -> None:
    settings.FILE_UPLOAD_MAX_MEMORY_SIZE = 10  # Django would write more than this to disk
    stranger.cookies["csrftoken"] = "0123456789abcdefghijklmnopqrstuv"  # made up by the sender
    answer = stranger.post(page, {"username": "x", "file": SimpleUploadedFile("f", b"y" * 100)})
    assert answer.status_code == 415
    assert "File uploads are not supported" in answer.content.decode()


def test_a_file_is_not_written_before_it_is_refused(
    stranger: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary_files: list[object] = []
    monkeypatch.setattr(
        "django.core.files.uploadhandler.TemporaryUploadedFile",
        lambda *arguments: temporary_files.append(arguments),
    )
    settings.FILE_UPLOAD_MAX_MEMORY_SIZE = 10
    stranger.cookies["csrftoken"] = "0123456789abcdefghijklmnopqrstuv"
    stranger.post("/sign-in/", {"file": SimpleUploadedFile("f", b"y" * 100)})
    assert temporary_files == []


def test_a_file_is_refused_by_the_api(db: None) -> None:
    operator = api_client_of(factories.person("olga", Role.OPERATOR))
    sent = {"asset": "x", "file": SimpleUploadedFile("f", b"y")}
    for address in ("/api/v1/backfills/", "/api/v1/tokens/"):
        answer = operator.post(address, sent, format="multipart")
        assert answer.status_code == 415
        assert answer["Content-Type"] == "application/problem+json"
    # Where the token of a form is asked for, it is read before the API looks at its kind.
    checking = APIClient(enforce_csrf_checks=True, raise_request_exception=False)
    checking.cookies = operator.cookies
    answer = checking.post("/api/v1/backfills/", sent, format="multipart")
    assert answer.status_code in (403, 415)
    assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "application/json", "text/x"])
@pytest.mark.parametrize("address", [*PAGES, *OPERATIONS])
def test_a_large_body_is_refused_unread(stranger: Client, address: str, kind: str) -> None:
    class Unread:
        """A body that no code may read."""

        def read(self, size: int = -1) -> bytes:
            raise AssertionError("the body was read")

        readline = read

    headers: dict[str, Any] = {"CONTENT_LENGTH": str(LIMIT + 1), "wsgi.input": Unread()}
    answer = stranger.generic("POST", address, b"", content_type=kind, **headers)
    assert answer.status_code == 413
    if address.startswith("/api/"):
        assert answer["Content-Type"] == "application/problem+json"
        assert "2,621,440 bytes" in answer.json()["detail"]
    else:
        assert "Request too large" in answer.content.decode()


@pytest.mark.parametrize(
    "length", ["9" * 5000, "9" * 30, "+99999999", "99_999_999", " 99999999 ", "٩٩٩٩٩٩٩٩"]
)
def test_a_length_of_many_digits_is_too_large(stranger: Client, length: str) -> None:
    answer = stranger.generic("POST", "/sign-in/", b"", CONTENT_LENGTH=length)
    assert answer.status_code == 413


@pytest.mark.django_db
def test_a_body_within_the_limit_is_read(stranger: Client) -> None:
    answer = stranger.post("/sign-in/", "x" * LIMIT, content_type="application/octet-stream")
    assert answer.status_code == 403  # there is no token of the form in it


@pytest.fixture
def web(services: Services, tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """Start a web server; return its port and the folder for its temporary files."""
    with web_server({"TMPDIR": str(tmp_path)}) as (port, _):
        yield port, tmp_path


@pytest.mark.parametrize("address", ["/sign-in/", "/api/v1/tokens/"])
def test_three_hundred_megabytes_are_refused_by_their_first_line(
    web: tuple[int, Path], address: str
) -> None:
    port, temporary = web
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        connection.sendall(
            f"POST {address} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 314572800\r\n"
            "Cookie: csrftoken=0123456789abcdefghijklmnopqrstuv\r\n"
            "Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n"
            'Content-Disposition: form-data; name="f"; filename="f"\r\n\r\n'.encode()
            + b"y" * 100_000
        )
        answer = connection.recv(65536).decode()
    assert answer.startswith("HTTP/1.1 413")
    assert not [path for path in temporary.rglob("*") if path.is_file()]


def test_a_body_of_no_told_length_is_read_and_bounded(web: tuple[int, Path]) -> None:
    port, _ = web
    # Told by its name: the body has been read.
    body = b'{"a field of no credentials": 1}'
    headers = ("Content-Type: application/json", "Transfer-Encoding: chunked")
    first = request("POST /api/v1/tokens/", *headers)
    chunk = b"%x\r\n%b\r\n" % (len(body), body)
    answer = exchange(port, first, chunk + b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"a field of no credentials" in answer
    large = b"%x\r\n%b\r\n" % (LIMIT, b"y" * LIMIT)
    answer = exchange(port, first, large[: LIMIT // 2], large[LIMIT // 2 :] + chunk)
    assert answer.startswith(b"HTTP/1.1 413")

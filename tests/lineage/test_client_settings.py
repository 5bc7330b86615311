"""Whether events are sent, by the variables and the file that OpenLineage's client reads."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.checks import run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from openlineage.client import OpenLineageClient
from openlineage.client.transport.http import HttpTransport
from requests.adapters import HTTPAdapter

from slicewise_server.lineage import event_client
from slicewise_server.lineage.checks import TAG
from slicewise_server.lineage.client_settings import sends_events
from slicewise_server.lineage.event_session import EventSession
from slicewise_server.lineage.transport_settings import receiver_name, transport_problem
from slicewise_server.stack import doctor

PROJECT = Path(__file__).resolve().parents[2]
FILE = "transport:\n  type: http\n  url: http://localhost:9\n"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Begin without variables and files of OpenLineage."""
    kept = {name: value for name, value in os.environ.items() if "OPENLINEAGE" not in name}
    monkeypatch.setattr("os.environ", {**kept, "HOME": str(tmp_path / "home")})
    monkeypatch.chdir(tmp_path)
    sends_events.cache_clear()
    event_client.client.cache_clear()
    yield
    sends_events.cache_clear()
    event_client.client.cache_clear()


def test_nothing_is_sent_where_nothing_is_set() -> None:
    assert not sends_events()


@pytest.mark.parametrize(
    "variables",
    [
        {"OPENLINEAGE_URL": "http://localhost:9"},
        {
            "OPENLINEAGE__TRANSPORT__TYPE": "http",
            "OPENLINEAGE__TRANSPORT__URL": "http://localhost:9",
        },
    ],
)
def test_variables_name_a_receiver_unless_events_are_disabled(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert sends_events()
    assert OpenLineageClient().transport.kind == "http"
    sends_events.cache_clear()
    monkeypatch.setenv("OPENLINEAGE_DISABLED", "True")
    assert not sends_events()
    assert OpenLineageClient().transport.kind == "noop"


@pytest.mark.parametrize("place", ["named.yml", "openlineage.yml", "home/.openlineage"])
def test_a_file_names_a_receiver(
    place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / place
    if place == "home/.openlineage":
        file.mkdir(parents=True)
        file = file / "openlineage.yml"
    file.write_text(FILE)
    if place == "named.yml":
        monkeypatch.setenv("OPENLINEAGE_CONFIG", str(file))
    assert sends_events()
    assert OpenLineageClient().transport.kind == "http"


def test_a_file_without_a_receiver_sends_nothing(tmp_path: Path) -> None:
    (tmp_path / "openlineage.yml").write_text("facets:\n  environment_variables: []\n")
    assert not sends_events()
    assert OpenLineageClient().transport.kind == "console"


def test_a_file_that_cannot_be_read_sends_nothing(tmp_path: Path) -> None:
    (tmp_path / "openlineage.yml").write_bytes(b"\xff\xfe transport: \x00")
    assert not sends_events()


# ---------------------------------------------------------------- incomplete settings

LACKING = [
    ({"OPENLINEAGE__TRANSPORT__URL": "http://localhost:9"}, "has no type"),
    ({"OPENLINEAGE__TRANSPORTS__A__TYPE": "http"}, "has no type"),
    ({"OPENLINEAGE__TRANSPORT": '{"url": "http://localhost:9"}'}, "has no type"),
    ({"OPENLINEAGE__TRANSPORT": "http"}, "no JSON object"),
    ({"OPENLINEAGE__TRANSPORT__TYPE": "htpp"}, "'htpp' is no type"),
    ({"OPENLINEAGE__TRANSPORT__TYPE": "http"}, "lacks `url`"),
    (
        {"OPENLINEAGE__TRANSPORT__TYPE": "http", "OPENLINEAGE_URL": "http://localhost:9"},
        "lacks `url`",
    ),
    (
        {"OPENLINEAGE__TRANSPORT__TYPE": "kafka", "OPENLINEAGE__TRANSPORT__CONFIG": '{"a": "b"}'},
        "lacks `topic`",
    ),
    ({"OPENLINEAGE__TRANSPORT__TYPE": "composite"}, "lacks `transports`"),
    (
        {
            "OPENLINEAGE__TRANSPORT__TYPE": "composite",
            "OPENLINEAGE__TRANSPORT__TRANSPORTS__A__URL": "http://localhost:9",
        },
        "Transport a of the composite transport of OpenLineage has no `type`",
    ),
]
COMPLETE = [
    ({"OPENLINEAGE_URL": "http://localhost:9"}, "http"),
    ({"OPENLINEAGE_URL": "http://localhost:9", "OPENLINEAGE__TRANSPORT__VERIFY": "1"}, "http"),
    ({"OPENLINEAGE__TRANSPORT": '{"type": "http", "url": "http://localhost:9"}'}, "http"),
    ({"OPENLINEAGE__TRANSPORT__TYPE": "console"}, "console"),
    (
        {"OPENLINEAGE__TRANSPORT__TYPE": "composite", "OPENLINEAGE_URL": "http://localhost:9"},
        "composite",
    ),
    ({}, "console"),
    ({"OPENLINEAGE__TRANSPORT__TYPE": "http", "OPENLINEAGE_DISABLED": "true"}, "noop"),
]


@pytest.mark.parametrize(("variables", "sentence"), LACKING)
def test_incomplete_variables_are_refused_with_the_missing_key(
    variables: dict[str, str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert sentence in transport_problem(os.environ)
    (error,) = run_checks(tags=[TAG])
    assert sentence in error.msg
    findings = {finding.name: finding for finding in doctor.examine(os.environ)}
    assert (findings["Lineage"].good, sentence in findings["Lineage"].advice) == (False, True)
    # No event counts as sent because the client has printed the event.
    with pytest.raises(event_client.TransportIncomplete, match=sentence):
        event_client.client()


@pytest.mark.parametrize(("variables", "kind"), COMPLETE)
def test_complete_variables_are_taken(
    variables: dict[str, str], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert transport_problem(os.environ) == ""
    assert run_checks(tags=[TAG]) == []
    assert event_client.client().transport.kind == kind


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("transport:\n  url: http://localhost:9\n", "has no type"),
        ("transport:\n", "has no type"),
        ("transport:\n  type: http\n", "lacks `url`"),
        ("transport: [\n", "openlineage.yml cannot be read: ParserError"),
        ("facets:\n  environment_variables: []\n", ""),
        (FILE, ""),
    ],
)
def test_an_incomplete_file_is_refused(text: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "openlineage.yml").write_text(text)
    problem = transport_problem(os.environ)
    assert (sentence in problem) if sentence else problem == ""


def test_a_file_and_variables_are_joined(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "openlineage.yml").write_text("transport:\n  url: http://localhost:9\n")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "http")
    assert transport_problem(os.environ) == ""
    assert event_client.client().transport.kind == "http"


def test_the_client_posts_by_the_session_that_reads_the_environment_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "http")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__URL", "http://localhost:9")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__RETRY", '{"total": 3}')
    transport = event_client.client().transport
    assert isinstance(transport, HttpTransport)
    assert isinstance(transport.session, EventSession)
    # The retries of the settings hold for the address of the settings.
    adapter = transport.session.get_adapter("http://localhost:9/api")
    assert isinstance(adapter, HTTPAdapter)
    assert adapter.max_retries.total == 3


def test_no_process_starts_with_an_incomplete_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__URL", "http://localhost:9")
    with pytest.raises(SystemCheckError, match="has no type"):
        call_command("check", tags=[TAG])
    # The step before all processes refuses, and asks neither the database nor Redis.
    nowhere = {"DATABASE_URL": "postgres://a@127.0.0.1:9/a", "REDIS_URL": "redis://127.0.0.1:9/0"}
    prepare = subprocess.run(
        [sys.executable, "-m", "slicewise_server.stack.prepare"],
        cwd=PROJECT,
        env={**os.environ, **nowhere, "SECRET_KEY": "test", "SPARK_REMOTE": "sc://localhost:9"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert prepare.returncode == 1
    assert "OpenLineage's transport has no type" in prepare.stderr


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, ""),
        ({"OPENLINEAGE_URL": "http://user:secret@marquez:5000/api"}, "marquez:5000"),
        ({"OPENLINEAGE__TRANSPORT__TYPE": "kafka"}, "kafka"),
        ({"OPENLINEAGE__TRANSPORT__URL": "https://[broken"}, ""),
        ({"OPENLINEAGE_URL": "https://user:p%23ss@[::1]:5000"}, "[::1]:5000"),
        ({"OPENLINEAGE_URL": "https://user:p@ss@marquez"}, "marquez"),
    ],
)
def test_the_receiver_is_named_without_credentials(
    variables: dict[str, str], expected: str
) -> None:
    assert receiver_name(variables) == expected


@pytest.mark.parametrize("password", ["pa#ss", "pa/ss", "pa?ss", "12#ss", "12/s@s", "12?ss", "[p"])
def test_the_receiver_has_no_name_if_a_password_is_not_encoded(password: str) -> None:
    """A part of the password would be the port, and the name of the person the host."""
    variables = {
        "OPENLINEAGE__TRANSPORT__TYPE": "http",
        "OPENLINEAGE__TRANSPORT__URL": f"http://user:{password}@marquez:5000",
    }
    assert receiver_name(variables) == "http"


def test_the_file_names_the_receiver(tmp_path: Path) -> None:
    (tmp_path / "openlineage.yml").write_text(FILE)
    assert receiver_name({}) == "localhost:9"

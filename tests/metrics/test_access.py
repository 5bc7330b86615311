"""Who reads the metrics, by which methods, and in which formats."""

from http import HTTPStatus
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from django.urls import reverse
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from slicewise_server.metrics_token import metrics_token
from slicewise_server.networks import networks

TOKEN = "0123456789abcdef0123456789abcdef"
ELSEWHERE = "203.0.113.9"


@pytest.fixture
def token(settings: Any) -> str:
    settings.METRICS_TOKEN, settings.METRICS_NETWORKS = TOKEN, ()
    return TOKEN


def status(client: Client, address: str = "127.0.0.1", **headers: str) -> int:
    names = {f"HTTP_{name.upper()}": value for name, value in headers.items()}
    code: int = client.get("/metrics", REMOTE_ADDR=address, **names).status_code  # type: ignore[arg-type]
    return code


def test_the_address_is_the_one_of_the_settings(settings: Any) -> None:
    assert reverse("metrics:metrics") == settings.METRICS_ADDRESS == "/metrics"


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.0.1", "::1", "::ffff:127.0.0.1"])
def test_this_host_reads_without_a_token(scrapers_client: Client, address: str) -> None:
    assert status(scrapers_client, address) == HTTPStatus.OK


@pytest.mark.parametrize("address", [ELSEWHERE, "10.0.0.5", "2001:db8::7", "", "unix:"])
def test_other_hosts_are_refused_without_a_token(scrapers_client: Client, address: str) -> None:
    assert status(scrapers_client, address) == HTTPStatus.FORBIDDEN


def test_a_refusal_names_the_settings_and_no_number(scrapers_client: Client) -> None:
    answer = scrapers_client.get("/metrics", REMOTE_ADDR=ELSEWHERE)
    text = answer.content.decode()
    assert "METRICS_TOKEN" in text
    assert "METRICS_NETWORKS" in text
    assert "slicewise_" not in text


@pytest.mark.parametrize(
    "header", [{"x_forwarded_for": ELSEWHERE}, {"forwarded": "for=x"}, {"x_real_ip": ELSEWHERE},
               {"via": "1.1 proxy"}],
)  # fmt: skip
def test_a_proxy_on_this_host_brings_nobody_in(
    scrapers_client: Client, header: dict[str, str]
) -> None:
    assert status(scrapers_client, **header) == HTTPStatus.FORBIDDEN


def test_a_trusted_proxy_names_the_client(scrapers_client: Client, settings: Any) -> None:
    settings.TRUSTED_PROXIES = networks("TRUSTED_PROXIES", ["127.0.0.1"])
    settings.METRICS_NETWORKS = networks("METRICS_NETWORKS", ["10.0.0.0/8"])
    assert status(scrapers_client, x_forwarded_for="10.0.0.5") == HTTPStatus.OK
    assert status(scrapers_client, x_forwarded_for=f"10.0.0.5, {ELSEWHERE}") == HTTPStatus.FORBIDDEN


def test_a_named_network_reads_without_a_token(scrapers_client: Client, settings: Any) -> None:
    settings.METRICS_NETWORKS = networks("METRICS_NETWORKS", ["203.0.113.0/24"])
    assert status(scrapers_client, ELSEWHERE) == HTTPStatus.OK
    assert status(scrapers_client, "127.0.0.1") == HTTPStatus.FORBIDDEN


def test_the_token_opens_from_everywhere(scrapers_client: Client, token: str) -> None:
    for scheme in ("Bearer", "bearer"):
        assert status(scrapers_client, ELSEWHERE, authorization=f"{scheme} {token}") == 200
    assert status(scrapers_client) == HTTPStatus.FORBIDDEN


@pytest.mark.parametrize(
    "header", ["Bearer x", f"Basic {TOKEN}", TOKEN, "Bearer", "Bearer ", f"Bearer {TOKEN}0",
               "Bearer \xe9" * 16],
)  # fmt: skip
def test_a_wrong_token_is_refused_even_from_this_host(
    scrapers_client: Client, token: str, settings: Any, header: str
) -> None:
    settings.METRICS_NETWORKS = networks("METRICS_NETWORKS", ["127.0.0.1"])
    answer = scrapers_client.get("/metrics", HTTP_AUTHORIZATION=header)
    assert answer.status_code == HTTPStatus.UNAUTHORIZED
    assert answer["WWW-Authenticate"] == 'Bearer realm="metrics"'


@pytest.mark.parametrize("header", ["Bearer", "Bearer ", "Bearer x"])
def test_without_the_setting_no_token_is_right(scrapers_client: Client, header: str) -> None:
    assert status(scrapers_client, ELSEWHERE, authorization=header) == HTTPStatus.UNAUTHORIZED


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete", "options", "trace"])
def test_other_methods_are_refused(scrapers_client: Client, method: str) -> None:
    answer = getattr(scrapers_client, method)("/metrics")
    assert answer.status_code == HTTPStatus.METHOD_NOT_ALLOWED
    assert answer["Allow"] == "GET, HEAD"


def test_head_has_no_body(scrapers_client: Client) -> None:
    answer = scrapers_client.head("/metrics")
    assert answer.status_code == HTTPStatus.OK
    assert answer.content == b""


def test_a_name_of_another_site_is_for_tokens_alone(
    scrapers_client: Client, token: str, settings: Any
) -> None:
    authorization = f"Bearer {token}"
    assert status(scrapers_client, host="10.42.0.17:8000", authorization=authorization) == 200
    settings.METRICS_NETWORKS = networks("METRICS_NETWORKS", ["127.0.0.1"])
    assert status(scrapers_client, host="evil.example") == HTTPStatus.BAD_REQUEST
    assert status(scrapers_client, host="localhost") == HTTPStatus.OK


def test_plain_requests_are_not_sent_to_tls(scrapers_client: Client, settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = True
    assert status(scrapers_client) == HTTPStatus.OK
    assert scrapers_client.get("/metrics/x").status_code == HTTPStatus.MOVED_PERMANENTLY


def test_the_text_format_and_openmetrics(scrapers_client: Client) -> None:
    plain = scrapers_client.get("/metrics")
    assert plain["Content-Type"].startswith("text/plain; version=0.0.4")
    assert plain["Cache-Control"].startswith("max-age=0, no-cache, no-store")
    names = {family.name for family in read_text(plain.content.decode())}
    accept = "application/openmetrics-text; version=1.0.0"
    open_metrics = scrapers_client.get("/metrics", HTTP_ACCEPT=accept)
    assert open_metrics["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    text = open_metrics.content.decode()
    families = list(read_openmetrics(text))  # type: ignore[no-untyped-call]
    assert {family.name for family in families} >= {"slicewise_runs", "slicewise_runs_ended"}
    assert "slicewise_runs" in names


@pytest.mark.parametrize("accept", ["*/*", "", "application/json", "text/html;q=x", ";;,,", "\xff"])
def test_any_accept_header_gets_the_text_format(scrapers_client: Client, accept: str) -> None:
    answer = scrapers_client.get("/metrics", HTTP_ACCEPT=accept)
    assert answer.status_code == HTTPStatus.OK
    assert answer["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize(
    "accept", ["application/openmetrics-text; version=x", "text/plain; version=x.y",
               "application/openmetrics-text; version=9.9.9",
               "application/openmetrics-text; version=1.0.0; escaping=nonsense",
               "application/openmetrics-text; version=1.0.0; escaping=x\r\ny"],
)  # fmt: skip
def test_a_malformed_version_breaks_nothing(scrapers_client: Client, accept: str) -> None:
    answer = scrapers_client.get("/metrics", HTTP_ACCEPT=accept)
    assert answer.status_code == HTTPStatus.OK
    assert answer.content


@pytest.mark.parametrize(
    "token", ["short", "0123456789abcde", "0123456789 \xe9\xe9\xe9\xe9\xe9\xe9"]
)
def test_a_token_that_can_be_guessed_stops_the_start(token: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="METRICS_TOKEN: too short"):
        metrics_token("METRICS_TOKEN", token)


@pytest.mark.parametrize("token", ["", TOKEN])
def test_no_token_and_a_long_one_are_taken(token: str) -> None:
    assert metrics_token("METRICS_TOKEN", token) == token

"""A web server of two processes: each process answers for both."""

import time
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.db import connection

from slicewise_server.stack.services import Services
from tests.attacks.web_server import exchange, request, web_server

REQUESTS = 40
SAMPLE = 'slicewise_http_requests_total{code="200",handler="pages",method="GET"} '


def numbers(port: int) -> list[float]:
    """Return the number of requests to pages, by a scrape."""
    text = exchange(port, request("GET /metrics")).decode()
    assert text.startswith("HTTP/1.1 200"), text[:200]
    return [float(line.removeprefix(SAMPLE)) for line in text.splitlines() if SAMPLE in line]


@pytest.mark.slow
def test_two_processes_count_requests_together(transactional_db: None, services: Services) -> None:
    address = urlsplit(services.environment()["DATABASE_URL"])
    url = urlunsplit(address._replace(path=f"/{connection.settings_dict['NAME']}"))
    with web_server({"DATABASE_URL": url, "GRANIAN_WORKERS": "2"}) as (port, _):
        for _ in range(REQUESTS):
            exchange(port, request("GET /sign-in/"))
        # Each process keeps its last scrape for some seconds: one answer is enough.
        latest = time.monotonic() + 300
        while (counted := numbers(port)) != [REQUESTS] and time.monotonic() < latest:
            time.sleep(1)
        assert counted == [REQUESTS]

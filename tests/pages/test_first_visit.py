"""The weight of style sheets, scripts and pictures that a first visit to a page loads."""

from urllib.parse import urlsplit

import pytest
from django.test import Client
from playwright.sync_api import Browser, Response, expect
from pytest_django.live_server_helper import LiveServer

from accounts_app.models import User
from tests.browser import chromium
from tests.factories import DAILY_2013, asset
from tests.pages.opened_pages import opened

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
MOST_BYTES = 100_000
# A page, and an element that shows that all scripts of the page have run.
FIRST_PAGES = {
    "/": "#connection",
    "/assets/daily/": ".partition-grid",
    "/assets/graph/all/": "[data-node]",
    "/backfills/new/?asset=daily": "[aria-label='Pick a date: From']",
}


def test_a_first_visit_loads_less_than_100_kb(
    live_server: LiveServer, vera: User, browser: Client
) -> None:
    asset("daily", DAILY_2013)
    asset("sums", DAILY_2013, upstream={"daily": None})
    session = browser.cookies["sessionid"].value
    with chromium() as started:
        weights = {
            address: loaded_bytes(started, live_server.url, session, address)
            for address in FIRST_PAGES
        }
    assert all(40_000 < weight < MOST_BYTES for weight in weights.values()), weights


def loaded_bytes(started: Browser, home: str, session: str, address: str) -> int:
    """Return the compressed size of the static files that a page loads into an empty cache."""
    context = started.new_context(base_url=home)
    context.add_cookies([{"name": "sessionid", "value": session, "url": home}])
    answers: list[Response] = []
    context.on("response", lambda answer: answers.append(answer))
    page = context.new_page()
    opened(page, address)
    expect(page.locator(FIRST_PAGES[address]).first).to_be_attached()
    page.wait_for_load_state("networkidle")
    context.close()
    files = {urlsplit(answer.url).path for answer in answers if "/static/" in answer.url}
    return sum(compressed_bytes(file) for file in files)


def compressed_bytes(path: str) -> int:
    """Return the size of a file as the server sends the file to browsers."""
    return len(b"".join(Client().get(path, headers={"accept-encoding": "gzip"})))

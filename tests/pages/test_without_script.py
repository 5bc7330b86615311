"""Materialize and retry without script; `test_trigger_browser.py` does so with a backfill."""

import pytest
from django.test import Client
from playwright.sync_api import expect
from pytest_django.live_server_helper import LiveServer

from assets_app.models import Run
from tests.factories import DAILY_2013, asset
from tests.pages.real_browser import opened_page
from tests.pages.run_records import failed_partition

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def test_materialize_and_retry_without_a_script(live_server: LiveServer, browser: Client) -> None:
    flights = asset("flights", DAILY_2013)
    failed = failed_partition(flights, "2013-01-05", error="no rows")
    with opened_page(live_server.url, browser, script=False) as page:
        page.goto("/assets/flights/")
        assert page.evaluate("typeof window.htmx") == "undefined"
        page.locator("#selection").fill("2013-03-01")
        page.get_by_role("button", name="Materialize selection…").click()
        page.get_by_role("button", name="Materialize", exact=True).click()
        expect(page.get_by_role("status")).to_contain_text("queued.")
        assert Run.objects.latest("pk").selection == "2013-03-01"

        page.goto("/")
        page.get_by_role("link", name="Retry run…").click()
        page.get_by_role("button", name="Retry 1 run").click()
        expect(page.get_by_role("status")).to_contain_text("Retrying 1 run.")
        failed.refresh_from_db()
        assert failed.state == "queued"
        page.goto(f"/runs/{failed.pk}/")
        expect(page.locator("#status")).to_contain_text("Queued")

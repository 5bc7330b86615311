"""The grid of an asset follows the server, and what a person selects, opens and focuses stays."""

import re
from datetime import date

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from playwright.sync_api import expect
from pytest_django.live_server_helper import LiveServer

from assets_app.models import Asset, AssetPartition
from slicewise import PartitionByInterval
from tests.factories import DAILY_2013, asset
from tests.pages.markup import compact, polled_grid
from tests.pages.real_browser import opened_page
from tests.partition_records import record

HOURLY_2013 = PartitionByInterval("@hourly", start=date(2013, 1, 1), end=date(2014, 1, 1))


def put(of: Asset, key: str, state: str) -> None:
    """Change the state of a partition on record."""
    assert AssetPartition.objects.filter(asset=of, key=key).update(state=state) == 1


@pytest.mark.django_db
@pytest.mark.parametrize("page", ["", "?zoom=month&at=2013-03-01", "?zoom=year&at=2013-03-01"])
def test_a_poll_of_the_grid_answers_nothing_until_a_cell_has_changed(
    browser: Client, page: str
) -> None:
    daily = asset("daily", DAILY_2013)
    record(daily, "2013-03-04..2013-03-06")
    address = polled_grid(browser.get(f"/assets/daily/{page}").content.decode())
    with CaptureQueriesContext(connection) as queries:
        assert browser.get(address, headers={"hx-request": "true"}).status_code == 204
    assert len(queries) <= 8
    put(daily, "2013-03-05", "failed")
    answer = browser.get(address, headers={"hx-request": "true"})
    text = compact(answer.content.decode())
    assert "<html" not in text
    assert 'aria-label="2013-03-05: failed"' in text
    assert "Select failed 1" in text
    again = polled_grid(answer.content.decode())
    assert again.split("&version=")[0] == address.split("&version=")[0]
    assert browser.get(again, headers={"hx-request": "true"}).status_code == 204


@pytest.mark.django_db
def test_a_poll_of_a_zoomed_out_grid_tells_new_counts(browser: Client) -> None:
    hourly = asset("hourly", HOURLY_2013)
    address = polled_grid(browser.get("/assets/hourly/?zoom=all").content.decode())
    assert browser.get(address, headers={"hx-request": "true"}).status_code == 204
    record(hourly, "2013-03-04", lambda _: "failed")
    text = browser.get(address, headers={"hx-request": "true"}).content.decode()
    assert "March 2013: 24 failed, 720 missing" in text


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_cell_changes_while_selection_focus_and_drawer_stay(
    live_server: LiveServer, browser: Client
) -> None:
    daily = asset("daily", DAILY_2013)
    record(daily, "2013-03-04..2013-03-06")
    with opened_page(live_server.url, browser) as page:
        page.goto("/assets/daily/")
        field = page.get_by_label("Selected partitions")
        cell = page.locator('.partition-grid a[aria-label^="2013-03-05"]')
        cell.focus()
        for _ in range(2):
            page.keyboard.press("Shift+ArrowRight")
        expect(field).to_have_value("2013-03-05..2013-03-07")
        field.press("End")
        field.type(",2013-12-31")
        expect(page.locator("#selection-count")).to_have_text("4 partitions selected")
        focused = page.locator('.partition-grid a[aria-label^="2013-03-07"]')
        focused.focus()
        put(daily, "2013-03-05", "failed")
        expect(cell).to_have_attribute("aria-label", "2013-03-05: failed")
        expect(page.get_by_role("link", name="Select failed 1")).to_be_visible()
        expect(focused).to_be_focused()
        expect(page.locator("a.selected")).to_have_count(4)
        expect(field).to_have_value("2013-03-05..2013-03-07,2013-12-31")
        assert page.locator('.partition-grid a[tabindex="0"]').count() == 1
        # The new cells extend the range that the old cells began.
        page.keyboard.press("Shift+ArrowRight")
        expect(field).to_have_value("2013-03-05..2013-03-08")

        page.keyboard.press("Enter")
        drawer = page.get_by_role("dialog")
        expect(drawer.get_by_role("heading", name="2013-03-08")).to_be_focused()
        put(daily, "2013-03-06", "failed")
        expect(page.get_by_role("link", name="Select failed 2")).to_be_visible()
        opened = page.locator('.partition-grid a[aria-current="true"]')
        expect(opened).to_have_attribute("aria-label", re.compile("2013-03-08"))
        page.keyboard.press("Escape")
        expect(opened).to_have_count(0)
        expect(page.locator('.partition-grid a[aria-label^="2013-03-08"]')).to_be_focused()

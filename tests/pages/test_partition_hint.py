"""The hint on a cell of the grid under the pointer."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from playwright.sync_api import expect
from pytest_django.live_server_helper import LiveServer

from accounts_app.models import User
from assets_app.models import Asset, AssetPartition, Run
from assets_app.queries.pages import partition_of
from assets_app.views.assets import asset_for_page
from assets_app.views.partition_hint import partition_hint
from tests.execution.conftest import make_gateway
from tests.factories import DAILY_2013, asset
from tests.pages.markup import compact, page_at
from tests.pages.real_browser import opened_page
from tests.pages.run_records import failed_partition
from tests.partition_records import made
from tests.scheduling.scheduled_assets import HOURLY, at, by, scheduled, write


def failed_for_a_minute(key: str) -> Run:
    """Create a daily asset, and a run of a minute that failed."""
    run = failed_partition(asset("daily", DAILY_2013), key)
    now = timezone.now()
    Run.objects.filter(pk=run.pk).update(started_at=now - timedelta(minutes=1), ended_at=now)
    return run


@pytest.mark.django_db
def test_a_hint_tells_key_state_last_run_and_duration(browser: Client) -> None:
    run = failed_for_a_minute("2013-03-05")
    address = "/assets/daily/partitions/{}/?fragment=hint"
    with CaptureQueriesContext(connection) as statements:
        text = compact(page_at(browser, address.format("2013-03-05")))
    assert len(statements) == 6
    assert "<b>2013-03-05</b>" in text
    assert "Failed" in text
    assert f"Last run {run.pk}:" in text
    assert "duration 1 min" in text
    assert "No run yet" in browser.get(address.format("2013-03-06")).content.decode()
    assert browser.get(address.format("1999-01-01")).status_code == 404


def statement_count(user: User, of: Asset, key: str) -> int:
    """Return the number of statements of the hint on a partition whose row has been read."""
    request = RequestFactory().get("/?fragment=hint")
    request.user = user
    row = partition_of(of, key)
    with CaptureQueriesContext(connection) as statements:
        assert partition_hint(request, of, key, row).status_code == 200
    return len(statements)


@pytest.mark.django_db
def test_a_hint_takes_three_statements_and_four_for_a_stale_partition(vera: User) -> None:
    gateway = make_gateway("scheduled")
    source = asset("source", HOURLY)
    scheduled("copy", by("source"), HOURLY, since=at(2024, 1, 1), upstream={"source": None})
    copied, key = asset_for_page("copy"), "2024-07-01T00:00Z"
    write(source, key, gateway, vera)
    write(copied, key, gateway, vera)
    assert statement_count(vera, copied, key) == 3
    write(source, key, gateway, vera)
    assert statement_count(vera, copied, key) == 4
    assert statement_count(vera, copied, "2024-07-01T01:00Z") == 2


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_hint_stays_under_the_pointer_until_escape_or_leaving(
    live_server: LiveServer, browser: Client
) -> None:
    run = failed_for_a_minute("2013-03-05")
    with opened_page(live_server.url, browser) as page:
        page.goto("/assets/daily/?selection=2013-03-05")
        expect(page.locator("#selection-count")).to_have_text("1 partition selected")
        cell = page.locator('.partition-grid a[aria-label^="2013-03-05"]')
        hint = page.get_by_role("tooltip")
        cell.scroll_into_view_if_needed()
        before = cell.bounding_box()
        cell.hover()
        expect(hint).to_contain_text(f"Last run {run.pk}")
        # Nothing on the page moves, so that the cell stays under the pointer.
        page.wait_for_timeout(500)
        expect(hint).to_be_visible()
        assert cell.bounding_box() == before
        hint.hover()
        page.wait_for_timeout(500)
        expect(hint).to_be_visible()
        page.keyboard.press("Escape")
        expect(hint).to_be_hidden()
        expect(page.locator("a.selected")).to_have_count(1)
        cell.hover()
        expect(hint).to_be_visible()
        page.get_by_role("heading", level=1).hover()
        expect(hint).to_be_hidden()


@pytest.mark.django_db
def test_a_failed_partition_shows_whether_it_has_earlier_data(browser: Client) -> None:
    daily = asset("daily", DAILY_2013)
    made(daily, "2013-01-05", version=3)
    made(daily, "2013-01-06", version=0)
    earlier, none = "Previous data (version 3) is still available.", "No data."
    addresses = ("?fragment=hint", ""), ("", "true"), ("", "")
    for query, htmx in addresses:
        for key, state, expected in (
            ("2013-01-05", "failed", earlier),
            ("2013-01-06", "failed", none),
            ("2013-01-05", "materialized", ""),
        ):
            AssetPartition.objects.filter(key=key).update(state=state)
            headers = {"HX-Request": "true"} if htmx else {}
            address = f"/assets/daily/partitions/{key}/{query}"
            text = browser.get(address, headers=headers).content.decode()
            assert (earlier in text) == (expected == earlier)
            assert (none in text) == (expected == none)

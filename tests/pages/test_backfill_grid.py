"""The grid on the page of a backfill: zooms, cells that are shares, and chosen partitions alone."""

import re
from datetime import date
from html import unescape
from urllib.parse import quote

import pytest
from django.core.cache import cache
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from playwright.sync_api import expect
from pytest_django.live_server_helper import LiveServer

from accounts_app.models import User
from assets_app.models import Asset
from backfills_app.models import Backfill
from partitions_app.models import PartitionDefinition
from slicewise import PartitionByInterval, PartitionByProduct, PartitionBySequence
from slicewise_server.web import kept_counts
from tests.clients import browser_of
from tests.factories import asset, person
from tests.pages.backfill_records import runs_of, skip, written_backfill
from tests.pages.markup import compact, polled_address, selected
from tests.pages.real_browser import opened_page

pytestmark = pytest.mark.django_db
HOURLY = PartitionByInterval("@hourly", start=date(2024, 1, 1), end=date(2025, 1, 1))
DAILY = PartitionByInterval("@daily", start=date(2024, 1, 1), end=date(2025, 1, 1))
SHOPS = PartitionBySequence([f"shop_{number}" for number in range(60)])
_SLOW_FETCH = """const original = window.fetch;
window.fetch = async (...values) => {
  await new Promise((done) => { setTimeout(done, 300); });
  return original(...values);
};"""


@pytest.fixture
def year(vera: User) -> Backfill:
    """Create a backfill of a year of hours, of which some have begun."""
    asset("hourly", HOURLY)
    with transaction.atomic():
        year = written_backfill(vera, "hourly", "2024-01-01", "2024-12-31")
        runs_of(year, "succeeded", 3)
        runs_of(year, "failed", 1, error="no")
        runs_of(year, "running", 2)
        skip(year, "in_flight", 1)
    return year


def page_of(browser: Client, backfill: Backfill, query: str = "") -> str:
    """Return the page of a backfill."""
    return browser.get(f"/backfills/{backfill.pk}/?{query}").content.decode()


def names(text: str) -> list[str]:
    """Return the names of the cells."""
    grid = text.split('<div id="cells"')[1]
    return [
        unescape(name)
        for name in re.findall(r'<a class="[^"]*" href="[^"]*" aria-label="([^"]*)"', grid)
    ]


def following(text: str) -> str | None:
    """Return the query of the next page in time."""
    found = re.search(r'rel="next" href="\?([^"#]*)', text)
    return unescape(found[1]) if found else None


def test_zoomed_out_a_cell_has_the_numbers_of_the_backfills_partitions(
    browser: Client, year: Backfill
) -> None:
    text = page_of(browser, year, "zoom=year")
    cells = names(text)
    assert len(cells) == 366
    assert cells[:2] == [
        "2024-01-01: 3 succeeded, 1 failed, 2 queued or running, 1 skipped, 17 waiting",
        "2024-01-02: 24 waiting",
    ]
    backfill_asset = year.assets.get().pk
    query = f"zoom=day&amp;at=2024-01-01&amp;backfill_asset={backfill_asset}"
    assert f'href="?{query}#partitions"' in text
    years = names(page_of(browser, year, "zoom=all"))
    assert years[1] == "February 2024: 696 waiting"


def test_zooming_in_shows_each_partition_once(browser: Client, year: Backfill) -> None:
    text = page_of(browser, year, "zoom=month&at=2024-01-01")
    cells = names(text)
    assert cells[:4] == [
        "2024-01-01T00:00Z: succeeded", "2024-01-01T01:00Z: succeeded",
        "2024-01-01T02:00Z: succeeded", "2024-01-01T03:00Z: failed",
    ]  # fmt: skip
    while query := following(text):
        text = page_of(browser, year, query)
        cells += names(text)
    assert len(cells) == len(set(cells)) == 8784


def test_waiting_partitions_look_other_than_queued_ones(browser: Client, year: Backfill) -> None:
    text = page_of(browser, year, "zoom=day&at=2024-01-01")
    cells = re.findall(
        r'<a class="([^"]*)" href="[^"]*" aria-label="[^"]*: (waiting|queued)"', text
    )
    assert cells
    assert {state for name, state in cells if "missing" in name.split()} == {"waiting"}
    assert all("missing" in name.split() for name, state in cells if state == "waiting")
    legend = text[text.index('aria-label="Legend"') :]
    assert re.findall(r'"key-cell (missing|queued)"></span>(\w+)', legend) == [
        ("missing", "Waiting"), ("queued", "Queued"),
    ]  # fmt: skip


def test_the_first_look_is_at_the_next_partition_that_waits(browser: Client, vera: User) -> None:
    asset("hourly", HOURLY)
    newest = written_backfill(vera, "hourly", "2024-01-01", "2024-12-31", order="newest")
    assert "December 2024" in page_of(browser, newest)
    oldest = written_backfill(vera, "hourly", "2024-01-01", "2024-12-31")
    oldest.assets.get().partitions.filter(key__lt="2024-03").update(state="succeeded")
    assert "March 2024" in page_of(browser, oldest)


def test_the_first_look_at_an_ended_backfill_is_at_the_first_failed_partition(
    browser: Client, vera: User
) -> None:
    asset("hourly", HOURLY)
    backfill = written_backfill(vera, "hourly", "2024-01-01", "2024-12-31")
    (asset_row,) = backfill.assets.all()
    asset_row.partitions.update(state="succeeded")
    failed = asset_row.partitions.filter(key__gte="2024-05", key__lt="2024-07")
    number = failed.update(state="failed")
    backfill.assets.update(waiting=0, succeeded=8784 - number, failed=number)
    assert "May 2024" in page_of(browser, backfill)


def test_chosen_windows_and_segments_alone_have_cells(browser: Client, vera: User) -> None:
    asset("sales", PartitionByProduct({"day": DAILY, "shop": SHOPS}))
    chosen = "day=2024-03-01..2024-03-02 shop=shop_3,shop_50; day=2024-03-05 shop=shop_50"
    backfill = written_backfill(vera, "sales", selection=chosen)
    assert names(page_of(browser, backfill, "zoom=month")) == [
        "2024-03-01|shop_3: waiting",
        "2024-03-02|shop_3: waiting",
        "2024-03-01|shop_50: waiting",
        "2024-03-02|shop_50: waiting",
        "2024-03-05|shop_50: waiting",
    ]


def test_shares_of_some_segments_count_these_alone(browser: Client, vera: User) -> None:
    asset("sales", PartitionByProduct({"shop": SHOPS, "day": DAILY}))
    backfill = written_backfill(vera, "sales", selection="day=2024 shop=*")
    runs_of(backfill, "failed", 61, error="no")
    first = names(page_of(browser, backfill, "zoom=year&at=2024-01-01"))
    assert first[0] == "shop_0, January 2024: 2 failed, 29 waiting"
    assert first[1] == "shop_0, February 2024: 29 waiting"
    second = names(page_of(browser, backfill, "zoom=year&at=2024-01-01&page=2"))
    assert second[0] == "shop_36, January 2024: 1 failed, 30 waiting"


def test_the_grid_stays_as_it_was_cut_when_the_asset_is_cut_anew(
    browser: Client, vera: User
) -> None:
    asset("hourly", HOURLY)
    backfill = written_backfill(vera, "hourly", "2024-05-01", "2024-05-02")
    daily = PartitionDefinition.of(DAILY.to_json())
    Asset.objects.update(partition_definition=daily)
    assert "2024-05-02T23:00Z: waiting" in names(page_of(browser, backfill, "zoom=month"))


@pytest.mark.parametrize("zoom", ["day", "year"])
def test_partitions_are_selected_by_state_for_the_forms_of_the_asset(
    browser: Client, year: Backfill, zoom: str
) -> None:
    page = f"zoom={zoom}&at=2024-01-01"
    text = compact(page_of(browser, year, page))
    assert "Select failed 1</a>" in text
    assert "Select skipped 1</a>" in text
    assert '<form class="mb-3" method="get" action="/assets/hourly/materialize/">' in text
    assert selected(page_of(browser, year, f"{page}&select=failed")) == "2024-01-01T03:00Z"
    # Persons who may materialize nothing have no use for a selection.
    otto = browser_of(person("otto"))
    assert 'name="selection"' not in page_of(otto, year, page)


@pytest.mark.parametrize(("zoom", "runs"), [("day", [[3, 4]]), ("year", [[0, 0]])])
def test_a_typed_selection_is_marked_and_counted(
    browser: Client, year: Backfill, zoom: str, runs: list[list[int]]
) -> None:
    address = f"/backfills/{year.pk}/selected/?zoom={zoom}&at=2024-01-01&selection="
    marks = browser.get(f"{address}2024-01-01T03:00Z..2024-01-01T04:00Z").json()
    assert marks == {"runs": runs, "count": 2, "error": ""}
    assert "2024-13-01" in browser.get(f"{address}2024-13-01").json()["error"]


def narrowed(browser: Client, backfill: Backfill, zoom: str, text: str) -> dict[str, object]:
    """Return the answer about the text of cells."""
    query = {"zoom": zoom, "at": "2024-03-01", "selection": text, "within": "1"}
    return dict(browser.get(f"/backfills/{backfill.pk}/selected/", query).json())


def test_the_text_of_cells_is_answered_with_the_text_of_the_backfills_partitions(
    browser: Client, vera: User
) -> None:
    asset("sales", PartitionByProduct({"day": DAILY, "shop": SHOPS}))
    chosen = "day=2024-03-02,2024-03-05 shop=shop_3,shop_50; day=2024-03-04 shop=shop_50"
    backfill = written_backfill(vera, "sales", selection=chosen)
    cells = narrowed(browser, backfill, "month", "day=2024-03-02..2024-03-05 shop=shop_3")
    text = "day=2024-03-02,2024-03-05 shop=shop_3"
    assert cells == {"runs": [[0, 1]], "count": 2, "error": "", "text": text}
    month = narrowed(browser, backfill, "all", "day=2024-03 shop=shop_50")
    assert month["text"] == "day=2024-03-02,2024-03-04..2024-03-05 shop=shop_50"
    assert narrowed(browser, backfill, "month", "day=2024-03-03 shop=*")["text"] == ""
    assert narrowed(browser, backfill, "month", "day=2024-13")["error"]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_neighbouring_cells_select_the_partitions_of_the_backfill_alone(
    live_server: LiveServer, browser: Client, vera: User
) -> None:
    asset("hourly", HOURLY)
    asset("sales", PartitionByProduct({"day": DAILY, "shop": SHOPS}))
    chosen = "2024-01..2024-02,2024-03-02T03:00Z,2024-03-02T05:00Z"
    with transaction.atomic():
        backfill = written_backfill(vera, "hourly", selection=chosen)
        by_shop = written_backfill(
            vera,
            "sales",
            selection="day=2024-03-02,2024-03-05 shop=shop_3; day=2024-03-05 shop=shop_50",
        )
    with opened_page(live_server.url, browser) as page:
        page.add_init_script(_SLOW_FETCH)
        page.goto(f"/backfills/{backfill.pk}/?zoom=day&at=2024-03-02")
        field = page.get_by_label("Selected partitions")
        page.locator('.partition-grid a[aria-label^="2024-03-02T03:00Z"]').focus()
        page.keyboard.press("Shift+ArrowRight")
        expect(field).to_have_value("2024-03-02T03:00Z,2024-03-02T05:00Z")
        expect(page.locator("#selection-count")).to_have_text("2 partitions selected")
        # Rows with different windows are one rectangle by their columns.
        page.goto(f"/backfills/{by_shop.pk}/?zoom=month&at=2024-03-01")
        first, last = (
            page.locator(f'.partition-grid a[aria-label^="2024-03-05|{shop}"]')
            for shop in ("shop_3", "shop_50")
        )
        first.click(modifiers=["Control"])
        last.click(modifiers=["Shift"])
        expect(field).to_have_value("day=2024-03-05 shop=shop_3,shop_50")
        # The cell of a month; the button is pressed before the server has answered.
        page.goto(f"/backfills/{backfill.pk}/?zoom=all")
        month = page.locator('.partition-grid a[aria-label^="March 2024"]')
        month.click(modifiers=["Control"])
        page.get_by_role("button", name="Materialize selection…").click()
        selected_text = re.escape(quote("2024-03-02T03:00Z,2024-03-02T05:00Z"))
        expect(page).to_have_url(re.compile(f"/assets/hourly/materialize/.*={selected_text}"))


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_keys_marks_and_the_drawer_work_in_the_grid_of_a_backfill(
    live_server: LiveServer, browser: Client, year: Backfill
) -> None:
    with opened_page(live_server.url, browser) as page:
        page.goto(f"/backfills/{year.pk}/?zoom=day&at=2024-01-01")
        field = page.get_by_label("Selected partitions")
        page.locator('.partition-grid a[aria-label^="2024-01-01T03:00Z"]').focus()
        page.keyboard.press("Shift+ArrowRight")
        expect(field).to_have_value("2024-01-01T03:00Z..2024-01-01T04:00Z")
        expect(page.locator("#selection-count")).to_have_text("2 partitions selected")
        # A poll brings a new state, and the marks stay.
        with transaction.atomic():
            runs_of(year, "succeeded", 1)
        newest = page.locator('.partition-grid a[aria-label^="2024-01-01T07:00Z: succeeded"]')
        expect(newest).to_be_attached()
        expect(page.locator("a.selected")).to_have_count(2)
        page.keyboard.press("ArrowRight")
        cell = page.locator('.partition-grid a[aria-label^="2024-01-01T05:00Z"]')
        expect(cell).to_be_focused()
        page.keyboard.press("Enter")
        drawer = page.get_by_role("dialog")
        expect(drawer.get_by_role("heading", name="2024-01-01T05:00Z")).to_be_focused()
        expect(drawer.get_by_role("link", name="Next")).to_be_visible()
        page.keyboard.press("Escape")
        expect(cell).to_be_focused()
        page.get_by_role("button", name="Materialize selection…").click()
        expect(page).to_have_url(re.compile("/assets/hourly/materialize/.*selection=2024-01-01T03"))


@pytest.mark.parametrize("zoom", ["day", "month", "year", "all"])
def test_a_page_costs_a_few_statements_and_bytes_at_any_zoom(
    browser: Client, year: Backfill, zoom: str
) -> None:
    address = f"/backfills/{year.pk}/cells/?zoom={zoom}&at=2024-05-06"
    with CaptureQueriesContext(connection) as statements:
        answer = browser.get(address)
    assert len(answer.content) < 150_000
    assert len(statements) <= 12
    assert f"zoom={zoom}" in polled_address(answer.content.decode())


def test_shares_that_take_long_to_count_are_counted_once_until_a_partition_changes(
    browser: Client, year: Backfill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_counts, "CHEAP_SECONDS", 0.0)
    monkeypatch.setattr(kept_counts, "RESTS", 0)

    def counted() -> int:
        with CaptureQueriesContext(connection) as statements:
            page_of(browser, year, "zoom=year")
        return sum("date_trunc" in query["sql"] for query in statements)

    cache.clear()
    assert [counted(), counted()] == [1, 0]
    runs_of(year, "succeeded", 1)
    assert [counted(), counted()] == [1, 0]

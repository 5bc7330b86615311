"""Overdue partitions on the grid: in cells that are one partition, and in cells that are shares."""

import re
from collections.abc import Iterable
from datetime import date, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from assets_app.models import Asset, AssetPartition, FreshnessWatch, LatePartition, Run, RunState
from slicewise import PartitionByInterval, PartitionByProduct, PartitionBySequence
from slicewise.partitions import partition_rows
from tests.factories import asset, definition_of
from tests.pages.markup import cell, selected
from tests.pages.real_browser import opened_page
from tests.pages.run_records import recorded_run
from tests.partition_records import record

pytestmark = pytest.mark.django_db
HOURLY = PartitionByInterval(
    "@hourly", timezone="America/New_York", start=date(2024, 1, 1), end=date(2025, 1, 1)
)
DAILY = PartitionByInterval("@daily", start=date(2024, 1, 1), end=date(2025, 1, 1))
# Windows that began at 22 and 23 o'clock there, on the next day in UTC.
LAST_HOURS = "2024-02-01T22:00-05:00..2024-02-01T23:00-05:00"


def watch(of: Asset, selection: str, *, ago: timedelta = timedelta(hours=1)) -> list[str]:
    """Note the selected partitions as overdue since an hour ago, or at another time."""
    now = timezone.now()
    FreshnessWatch.objects.get_or_create(
        asset=of, defaults={"identity": of.identity, "freshness": {}, "watched_until": now}
    )
    rows = list(partition_rows(of.definition, definition_of(of).select(selection)))
    LatePartition.objects.bulk_create(
        LatePartition(
            asset=of,
            identity=of.identity,
            key=row.key,
            window_start=row.start,
            window_end=row.end,
            late_at=now - timedelta(hours=2),
            overdue_at=now - ago,
        )
        for row in rows
        if row.start and row.end
    )
    return [row.key for row in rows]


def text_of(browser: Client, address: str) -> str:
    """Return the markup of a page of an asset."""
    return browser.get(f"/assets/{address}").content.decode()


def picked(text: str) -> set[str]:
    """Return the texts of the buttons that select by state."""
    found: Iterable[str] = re.findall(r"Select (\w+ [\d,]+)\s*</a>", text)
    return set(found)


def test_a_share_cell_counts_and_marks_overdue_partitions(browser: Client) -> None:
    hourly = asset("hourly", HOURLY)
    record(hourly, "2024-02-01T00:00-05:00..2024-02-01T20:00-05:00")
    watch(hourly, LAST_HOURS)
    watch(hourly, "2024-02-03")
    text = text_of(browser, "hourly/?zoom=year")
    name = "2024-02-01: 21 materialized, 2 overdue, 1 missing"
    assert cell(text, "2024-02-01") == ("mixed has-overdue", name)
    assert cell(text, "2024-02-02") == ("missing", "2024-02-02: 24 missing")
    assert cell(text, "2024-02-03") == ("overdue", "2024-02-03: 24 overdue")
    assert {"overdue 26"} < picked(text)
    years = text_of(browser, "hourly/?zoom=all&at=2024-01-01")
    assert cell(years, "February 2024")[1].endswith("21 materialized, 26 overdue, 649 missing")


def test_a_zoomed_out_page_selects_no_part_of_too_many_partitions(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the definition has lost some of the partitions that are read."""
    hourly = asset("hourly", HOURLY)
    record(hourly, "2024-02-01T00:00-05:00..2024-02-01T03:00-05:00", lambda _: "failed")
    AssetPartition.objects.filter(key="2024-02-01T00:00-05:00").update(key="0")
    monkeypatch.setattr("assets_app.queries.grid_selection.MOST_SELECTED", 2)
    text = text_of(browser, "hourly/?zoom=year&at=2024-02-01&select=failed")
    assert "partitions: zoom in, or type a selection." in text
    assert selected(text) == ""


def test_failed_held_and_late_partitions_keep_the_look_that_they_have_closer(
    browser: Client,
) -> None:
    hourly = asset("hourly", HOURLY)
    keys = watch(hourly, "2024-02-01T00:00-05:00..2024-02-01T04:00-05:00")
    watch(hourly, "2024-02-01T05:00-05:00", ago=-timedelta(hours=1))
    record(hourly, keys[0], lambda _: "failed")
    run: Run = recorded_run(hourly, RunState.RUNNING, keys[1])
    record(hourly, keys[1], lambda _: "missing")
    AssetPartition.objects.filter(asset=hourly, key=keys[1]).update(held_by=run)
    record(hourly, keys[2])
    shares = text_of(browser, "hourly/?zoom=year")
    classes, name = cell(shares, "2024-02-01")
    assert classes == "mixed alarm has-overdue"
    assert name.endswith(" 1 materialized, 1 failed, 1 running, 2 overdue, 19 missing")
    closer = text_of(browser, "hourly/?zoom=day&at=2024-02-01")
    assert picked(closer) == {"failed 1", "overdue 2", "missing 19"}


@pytest.mark.parametrize("zoom", ["year", "day"])
def test_overdue_and_missing_partitions_are_selected_apart(browser: Client, zoom: str) -> None:
    hourly = asset("hourly", HOURLY)
    record(hourly, "2024")
    AssetPartition.objects.filter(asset=hourly, key__startswith="2024-02-01T2").delete()
    watch(hourly, LAST_HOURS)
    address = f"hourly/?zoom={zoom}&at=2024-02-01&select="
    assert selected(text_of(browser, f"{address}overdue")) == LAST_HOURS
    assert "22:00" not in selected(text_of(browser, f"{address}missing"))


def test_shares_of_segments_count_their_own_overdue_partitions(browser: Client) -> None:
    days = PartitionByInterval("@daily", start=date(2000, 1, 1), end=date(2020, 1, 1))
    shops = PartitionBySequence([f"shop_{n}" for n in range(60)])
    by_shop_and_day = PartitionByProduct({"shop": shops, "day": days})
    sales = asset("sales", by_shop_and_day)
    watch(sales, "day=2010-01-01..2010-01-05 shop=shop_3; day=2010-02-01 shop=shop_59")
    first = text_of(browser, "sales/?zoom=all&at=2010-01-01")
    assert cell(first, "shop_3, 2010")[1] == "shop_3, 2010: 5 overdue, 360 missing"
    assert cell(first, "shop_4, 2010")[1] == "shop_4, 2010: 365 missing"
    # The button selects the segments of the page alone.
    chosen = selected(text_of(browser, "sales/?zoom=all&at=2010-01-01&select=overdue"))
    assert definition_of(sales).select(chosen) == definition_of(sales).select(
        "day=2010-01-01..2010-01-05 shop=shop_3"
    )


def test_overdue_shares_take_one_statement_however_many_there_are(browser: Client) -> None:
    hourly = asset("hourly", HOURLY)

    def statements() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert len(browser.get("/assets/hourly/?zoom=year").content) < 150_000
        return len(queries)

    unwatched = statements()
    watch(hourly, "2024-02-01")
    assert statements() == unwatched + 1
    watch(hourly, "2024-03..2024-12")
    assert statements() == unwatched + 1


def test_a_partition_that_has_come_is_not_overdue_before_the_beat_looks(browser: Client) -> None:
    hourly = asset("hourly", HOURLY)
    watch(hourly, LAST_HOURS)
    record(hourly, LAST_HOURS)
    assert "overdue" not in cell(text_of(browser, "hourly/?zoom=year"), "2024-02-01")[1]


_LOOK = """cell => {
  const own = getComputedStyle(cell), mark = getComputedStyle(cell, "::after");
  return [own.borderTopWidth, own.borderTopStyle, own.borderTopColor,
          mark.content, mark.color, mark.fontSize, mark.borderBottomWidth];
}"""


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_overdue_cells_look_as_the_legend_says(live_server: LiveServer, browser: Client) -> None:
    days, hours = asset("days", DAILY), asset("hourly", HOURLY)
    watch(days, "2024-02-01..2024-02-03")
    watch(hours, "2024-02-01..2024-02-03")
    with opened_page(live_server.url, browser) as page:
        for address in (
            "days/?zoom=month",
            "days/?zoom=year",
            "hourly/?zoom=day",
            "hourly/?zoom=year",
        ):
            page.goto(f"/assets/{address}&at=2024-02-01")
            legend = page.locator(".legend .key-cell.overdue").evaluate(_LOOK)
            assert legend[3] == '"!"'
            looks = page.locator(".partition-grid a.overdue").evaluate_all(
                f"cells => cells.map({_LOOK})"
            )
            assert looks, address
            assert all(look == legend for look in looks), address


# How far the text of a cell reaches from the middle, and how far the cross leaves the middle free.
_TEXT_AND_MIDDLE = """cell => {
  const text = document.createRange();
  text.selectNodeContents(cell);
  const box = cell.getBoundingClientRect(), written = text.getBoundingClientRect();
  const middle = box.left + box.width / 2;
  const mark = getComputedStyle(cell).backgroundImage;
  const free = Number(mark.match(/^radial-gradient.*?\\) ([\\d.]+)px/)[1]);
  return [Math.max(middle - written.left, written.right - middle), free];
}"""


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_number_of_a_failed_day_is_in_the_free_middle_of_the_cross(
    live_server: LiveServer, browser: Client
) -> None:
    days = asset("days", DAILY)
    record(days, "2024-02-10..2024-02-29", lambda _: "failed")
    with opened_page(live_server.url, browser) as page:
        for width in (1400, 390):
            page.set_viewport_size({"width": width, "height": 900})
            page.goto("/assets/days/?zoom=year&at=2024-02-01")
            reaches = page.locator(".partition-grid a.failed").evaluate_all(
                f"cells => cells.map({_TEXT_AND_MIDDLE})"
            )
            assert len(reaches) == 20
            assert all(2 < written <= free for written, free in reaches), reaches

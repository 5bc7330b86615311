"""The impact of a change: the downstream partitions that become stale, on the asset's page."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import cycle

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

import slicewise
from accounts_app.models import User
from assets_app.models import Asset, AssetDependency, AssetPartition, RunState
from assets_app.queries import impact as impact_module
from assets_app.queries import partition_spans as spans_module
from assets_app.queries import upstream_reads as reads_module
from assets_app.queries.impact import impact_of
from assets_app.queries.upstream_reads import upstream_reads
from slicewise.partitions.windows import Windows
from tests.clients import browser_of
from tests.factories import DAILY_2013, DAY_BY_AIRPORT, asset, definition_of, external, person
from tests.pages.markup import compact, page_at
from tests.pages.run_records import recorded_run
from tests.partition_records import made
from tests.query_plans import rows_read

pytestmark = pytest.mark.django_db
MONTHLY_2013 = slicewise.PartitionByInterval("@monthly", start="2013-01-01", end="2014-01-01")
NOW = datetime(2014, 6, 1, tzinfo=UTC)


def reads(
    downstream: Asset, *upstream: Asset, mapping: slicewise.PartitionMapping | None = None
) -> Asset:
    """Let an asset read other assets, and return the asset."""
    for asset_row in upstream:
        AssetDependency.objects.create(
            upstream=asset_row,
            downstream=downstream,
            inlet=True,
            mapping=None if mapping is None else mapping.to_json(),
        )
    return downstream


@pytest.fixture
def raw(db: None) -> Asset:
    """Create an asset by day and airport, with a daily reader, a monthly one and a report."""
    raw = external("raw", DAY_BY_AIRPORT)
    daily = reads(asset("daily", DAILY_2013), raw)
    reads(asset("report"), reads(asset("monthly", MONTHLY_2013), daily))
    made(raw, "date=2013 airport=*")
    made(daily, "2013")
    return raw


def stale(of: Asset, selection: str) -> dict[str, str]:
    """Return the selections that become stale, by asset."""
    chosen = definition_of(of).select(selection)
    impact = impact_of(of, chosen, NOW)
    return {line.asset.name: line.text for line in impact.assets}


def test_partitions_that_read_a_changed_one_become_stale(raw: Asset) -> None:
    assert stale(raw, "date=2013-03-05 airport=JFK") == {
        "daily": "2013-03-05", "monthly": "", "report": "",
    }  # fmt: skip


def test_a_sync_may_change_a_definition_meanwhile(raw: Asset) -> None:
    before = Asset.objects.get(name="raw")
    hourly = slicewise.PartitionByInterval("@hourly", start="2013-01-01")
    raw.partition_definition = asset("unrelated", hourly).partition_definition
    raw.save()
    lines = impact_of(before, None, NOW).assets
    assert [line.asset.name for line in lines] == ["daily", "monthly", "report"]


def test_staleness_follows_over_several_assets_as_far_as_partitions_exist(raw: Asset) -> None:
    made(Asset.objects.get(name="monthly"), "2013-03..2013-12")
    found = stale(raw, "date=2013-02-28..2013-03-01 airport=EWR")
    assert found["daily"] == "2013-02-28..2013-03-01"
    assert found["monthly"] == "2013-03-01"


def test_a_partition_that_does_not_exist_passes_nothing_on(raw: Asset) -> None:
    made(Asset.objects.get(name="monthly"), "2013")
    AssetPartition.objects.filter(asset__name="daily", key__startswith="2013-03").delete()
    assert stale(raw, "date=2013-03 airport=*")["monthly"] == ""


def test_a_mapping_reaches_the_windows_that_it_names(raw: Asset) -> None:
    rolling = reads(
        asset("rolling", DAILY_2013), Asset.objects.get(name="daily"),
        mapping=slicewise.Offset(-6, 0),
    )  # fmt: skip
    made(rolling, "2013-01..2013-06")
    assert stale(raw, "date=2013-03-05 airport=JFK")["rolling"] == "2013-03-05..2013-03-11"


def test_a_trigger_without_a_read_makes_nothing_stale(raw: Asset) -> None:
    AssetDependency.objects.filter(downstream__name="daily").update(inlet=False, scheduling=True)
    assert stale(raw, "date=2013-03-05 airport=JFK") == {}


def test_a_diamond_is_counted_once(raw: Asset) -> None:
    daily = Asset.objects.get(name="daily")
    left, right = reads(asset("left", DAILY_2013), daily), reads(asset("right", DAILY_2013), daily)
    bottom = reads(asset("bottom", DAILY_2013), left, right)
    for of in (left, right, bottom):
        made(of, "2013-03")
    assert stale(raw, "date=2013-03-05..2013-03-06 airport=LGA")["bottom"] == (
        "2013-03-05..2013-03-06"
    )
    impact = impact_of(raw, None, NOW)
    assert [(line.asset.name, line.distance) for line in impact.assets if line.distance > 2] == [
        ("bottom", 3), ("report", 3),
    ]  # fmt: skip


def test_a_circle_of_readers_ends() -> None:
    first, second = asset("first", DAILY_2013), asset("second", DAILY_2013)
    reads(second, first)
    reads(first, second)
    made(first, "2013-01")
    made(second, "2013-01")
    assert stale(first, "2013-01-05") == {"second": "2013-01-05"}


def test_too_many_keys_are_bounded_and_said_so(
    raw: Asset, monkeypatch: pytest.MonkeyPatch, browser: Client
) -> None:
    monkeypatch.setattr(impact_module, "_MOST_KEYS", 3)
    text = compact(page_at(browser, "/assets/raw/impact/?selection=date=2013-03 airport=JFK"))
    assert "up to 31" in text


def test_the_page_says_what_becomes_stale_and_leads_on(raw: Asset, browser: Client) -> None:
    address = "/assets/raw/impact/?selection=date=2013-03-05..2013-03-06 airport=JFK"
    text = compact(page_at(browser, address))
    assert "2 partitions selected." in text
    assert '<div class="key">2013-03-05..2013-03-06</div>' in text
    assert '<table class="table table-sm as-cards">' in text
    assert 'href="/assets/monthly/"' in text
    assert "existing partitions" in text


def test_a_backfill_of_the_selection_and_downstream_is_offered(browser: Client) -> None:
    reads(asset("second", DAILY_2013), asset("first", DAILY_2013))
    text = page_at(browser, "/assets/first/impact/?selection=2013-03")
    link = re.search(r'href="(/backfills/new/[^"]*selection[^"]*)"', text)
    assert link is not None
    # The selection has the only primary action.
    primary = re.findall(r'class="[^"]*btn-primary[^"]*" href="([^"]*)"', text)
    assert primary == [link[1]]
    form = page_at(browser, link[1].replace("&amp;", "&"))
    assert 'value="2013-03-01"' in form
    assert 'value="2013-03-31"' in form
    assert re.search(r'value="all"[^>]*checked', form)


def test_a_viewer_is_offered_no_action(raw: Asset, db: None) -> None:
    reads(asset("second", DAILY_2013), asset("first", DAILY_2013))
    viewer: User = person("vincent")
    text = page_at(browser_of(viewer), "/assets/first/impact/?selection=2013-03")
    assert "/backfills/new/" not in text
    assert "/materialize/" not in text


@pytest.mark.parametrize("fragment", ["", "&fragment=panel", "&fragment=impact"])
def test_a_wrong_selection_is_said_at_its_field(raw: Asset, browser: Client, fragment: str) -> None:
    text = page_at(browser, f"/assets/raw/impact/?selection=2013-99{fragment}")
    assert 'class="field-errors"' in text
    assert "2013-99" in text


def test_a_fragment_has_no_frame(raw: Asset, browser: Client) -> None:
    assert "<html" not in page_at(browser, "/assets/raw/impact/?fragment=panel")
    impact = page_at(browser, "/assets/raw/impact/?fragment=impact")
    assert "<html" not in impact
    assert "<form" not in impact


def test_an_asset_without_readers_says_so(raw: Asset, browser: Client) -> None:
    assert "No asset reads report." in page_at(browser, "/assets/report/impact/")


def test_the_statements_grow_by_a_few_with_each_asset(raw: Asset, browser: Client) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as queries:
            page_at(browser, "/assets/raw/impact/?selection=date=2013-03-05 airport=JFK")
        return len(queries)

    statements()
    before = statements()
    for number in range(5):
        made(reads(asset(f"more_{number}", DAILY_2013), raw), "2013-03")
    assert statements() - before <= 10


def test_reads_of_all_of_time_take_no_statement_each(raw: Asset, browser: Client) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as queries:
            page_at(browser, "/assets/raw/impact/?selection=date=2013-03-05 airport=JFK")
        return len(queries)

    statements()
    before = statements()
    earlier = [raw]
    for number in range(5):
        more = reads(asset(f"more_{number}", DAILY_2013), *earlier, mapping=slicewise.All())
        made(more, "2013-03")
        earlier.append(more)
    assert statements() - before <= 10


def read(of: Asset, selection: str) -> dict[str, str]:
    """Return the selections that a selection reads, by upstream asset."""
    chosen = definition_of(of).select(selection)
    return {line.asset.name: line.text for line in upstream_reads(of, chosen, NOW).assets}


def test_a_selection_reads_partitions_of_all_assets_upstream(raw: Asset) -> None:
    assert read(Asset.objects.get(name="monthly"), "2013-02") == {
        "daily": "2013-02-01..2013-02-28", "raw": "date=2013-02-01..2013-02-28 airport=*",
    }  # fmt: skip
    daily = Asset.objects.get(name="daily")
    assert read(daily, "2013-03-05") == {"raw": "date=2013-03-05 airport=*"}


def test_partitions_that_are_read_are_counted_by_state(raw: Asset, browser: Client) -> None:
    AssetPartition.objects.update(state="materialized")
    daily = AssetPartition.objects.filter(asset__name="daily")
    daily.filter(key="2013-03-05").update(state="failed")
    daily.filter(key__gte="2013-03-30", key__lt="2013-04-01").delete()
    run = recorded_run(Asset.objects.get(name="daily"), RunState.RUNNING)
    daily.filter(key="2013-03-07").update(held_by=run)
    text = compact(page_at(browser, "/assets/monthly/impact/?selection=2013-03"))
    upstream = text.partition(">Upstream<")[2]
    assert "31 partitions" in upstream
    for words in ("1 failed", "1 running", "2 missing", "27 materialized"):
        assert f"</svg>{words}<" in upstream
    assert "93 materialized" in upstream
    assert "2 steps" in upstream


def test_needed_partitions_that_do_not_exist_are_told(browser: Client) -> None:
    late = asset("late", slicewise.PartitionByInterval("@daily", start="2013-06-01"))
    reads(asset("first", DAILY_2013), late)
    text = page_at(browser, "/assets/first/impact/?selection=2013-05-30..2013-06-02")
    assert "2 do not exist: 2013-05-30 to 2013-05-31" in text


def test_too_many_partitions_are_not_counted_by_state(
    raw: Asset, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    AssetPartition.objects.update(state="materialized")
    monkeypatch.setattr(reads_module, "_MOST_COUNTED", 40)
    text = page_at(browser, "/assets/monthly/impact/?selection=2013-03")
    assert "31 materialized" in text
    assert "Too many to count by state" in text


def test_the_assets_upstream_are_named_without_a_selection(raw: Asset, browser: Client) -> None:
    text = compact(page_at(browser, "/assets/monthly/impact/"))
    upstream = text.partition(">Upstream<")[2]
    assert 'href="/assets/raw/"' in upstream
    assert "Select partitions" in upstream
    assert "raw reads no asset." in page_at(browser, "/assets/raw/impact/")


def test_upstream_partitions_take_a_statement_for_each_asset(raw: Asset, browser: Client) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as queries:
            page_at(browser, "/assets/daily/impact/?selection=2013-03-05")
        return len(queries)

    statements()
    before = statements()
    mappings = (None, slicewise.All(), slicewise.Latest())
    readers = [Asset.objects.get(name="daily")]
    for number in range(5):
        more = asset(f"more_{number}", DAILY_2013)
        made(more, "2013-03")
        for reader, mapping in zip(readers, cycle(mappings), strict=False):
            reads(reader, more, mapping=mapping)
        readers.append(more)
    assert statements() - before <= 5


def rows_of_states(of: Asset, selection: str) -> int:
    """Return how many rows are read to count the partitions that a selection reads by state."""
    with CaptureQueriesContext(connection) as queries:
        read(of, selection)
    counted = [query["sql"] for query in queries if "AS holder" in query["sql"]]
    assert counted
    return sum(map(rows_read, counted))


def test_partitions_between_the_read_ones_are_not_read(raw: Asset) -> None:
    # Two days of three airports.
    assert rows_of_states(Asset.objects.get(name="daily"), "2013-01-01,2013-12-31") == 6


def test_without_time_only_the_partitions_of_the_set_are_read() -> None:
    shops = external("shops", slicewise.PartitionBySequence(["mitte", "wedding", "moabit"]))
    for shop in ("mitte", "wedding", "moabit"):
        made(shops, shop)
    two = reads(asset("two", slicewise.PartitionBySequence(["mitte", "wedding"])), shops)
    assert rows_of_states(two, "mitte") == 1


def test_partitions_between_many_read_ones_count_against_the_bound(
    raw: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spans_module, "_MOST_KEYS", 0)
    monkeypatch.setattr(reads_module, "_MOST_COUNTED", 364)
    monthly = Asset.objects.get(name="monthly")
    for selection, is_counted in (("2013-01..2013-02", True), ("2013-01,2013-12", False)):
        chosen = definition_of(monthly).select(selection)
        daily = upstream_reads(monthly, chosen, NOW).assets[0]
        assert bool(daily.states) == is_counted


def test_excluded_windows_between_the_read_ones_are_not_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    minutes = slicewise.PartitionByInterval("*/5 * * * *", start="2004-01-01", exclude="0 * * * *")
    sensors = external("sensors", minutes)
    days = minutes.select("2004-01-05,2013-12-20")
    for day in days.ranges:
        made(sensors, f"{day.first}..{day.last}")
    asked: list[int] = []
    excluded = Windows.excluded

    def counted_excluded(windows: Windows, first: int, stop: int) -> Sequence[int]:
        asked.append(stop - first)
        return excluded(windows, first, stop)

    monkeypatch.setattr(Windows, "excluded", counted_excluded)
    assert spans_module.spans(minutes, [sensors], days) == {"": days}
    assert spans_module.most_rows(days) == 2 * 24 * 11
    # Between the two days are a million windows.
    assert sum(asked) < 100_000


def test_excluded_windows_do_not_count_against_the_bound_of_adjacent_partitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workdays = slicewise.PartitionByInterval("@daily", start="2013-01-01", exclude="0 0 * * 6,0")
    weekly = reads(asset("weekly", slicewise.PartitionByInterval("@weekly", start="2013-01-06")),
                   asset("workdays", workdays))  # fmt: skip
    for most, is_counted in ((10, True), (9, False)):
        monkeypatch.setattr(reads_module, "_MOST_COUNTED", most)
        chosen = definition_of(weekly).select("2013-01-06..2013-01-13")
        (line,) = upstream_reads(weekly, chosen, NOW).assets
        assert bool(line.states) == is_counted


@pytest.mark.parametrize("htmx", [{}, {"HX-Request": "true"}])
def test_a_partition_leads_to_its_upstream_and_impact(
    raw: Asset, browser: Client, htmx: dict[str, str]
) -> None:
    text = browser.get("/assets/daily/partitions/2013-03-05/", headers=htmx).content.decode()
    assert 'href="/assets/daily/impact/?selection=2013-03-05"' in text
    whole = browser.get("/assets/report/partitions/", headers=htmx).content.decode()
    assert 'href="/assets/report/impact/"' in whole


def test_a_selection_in_the_grid_leads_to_its_upstream_and_impact(
    raw: Asset, browser: Client
) -> None:
    form = page_at(browser, "/assets/daily/?selection=2013-03")
    assert 'formaction="/assets/daily/impact/"' in form
    assert "31 partitions selected." in compact(
        page_at(browser, "/assets/daily/impact/?asset=daily&selection=2013-03")
    )

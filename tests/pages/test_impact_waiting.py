"""The partitions that wait for failed or missing ones, on the page of the impact."""

from datetime import UTC, datetime

import pytest
from django.test import Client

import slicewise
from assets_app.models import Asset, AssetDependency, AssetPartition
from assets_app.queries import impact_waiting
from assets_app.queries.impact import ImpactedAsset, impact_of
from tests.factories import DAILY_2013, asset, definition_of, external
from tests.pages.markup import compact, page_at
from tests.partition_records import made, record

pytestmark = pytest.mark.django_db
HOURLY_2013 = slicewise.PartitionByInterval("@hourly", start="2013-01-01", end="2014-01-01")
NOW = datetime(2013, 3, 8, 12, tzinfo=UTC)


def reads(
    downstream: Asset, upstream: Asset, mapping: slicewise.PartitionMapping | None = None
) -> Asset:
    """Let an asset read another asset, and return the reader."""
    AssetDependency.objects.create(
        upstream=upstream,
        downstream=downstream,
        inlet=True,
        mapping=None if mapping is None else mapping.to_json(),
    )
    return downstream


@pytest.fixture
def clicks(db: None) -> Asset:
    """Create hours of clicks that failed, of which a day and the day's report read."""
    clicks = asset("clicks", HOURLY_2013)
    conversion = reads(asset("conversion", DAILY_2013), clicks)
    reads(asset("summary", DAILY_2013), conversion)
    record(clicks, "2013-03-05T14:00Z..2013-03-08T05:00Z", lambda _: "failed")
    AssetPartition.objects.filter(asset=clicks).update(version=0, materialized_at=None)
    return clicks


def impacted(of: Asset, selection: str) -> dict[str, ImpactedAsset]:
    """Return the impacted assets by name."""
    chosen = definition_of(of).select(selection)
    return {line.asset.name: line for line in impact_of(of, chosen, NOW).assets}


def waiting(of: Asset, selection: str) -> dict[str, str]:
    """Return the selections that wait, by asset."""
    lines = impacted(of, selection)
    return {name: line.waiting.partitions.text for name, line in lines.items() if line.waiting}


FAILED = "2013-03-05T14:00Z..2013-03-08T05:00Z"


def test_partitions_wait_for_failed_ones_over_all_steps(clicks: Asset) -> None:
    # The window of 8 March has not ended.
    days = "2013-03-05..2013-03-07"
    assert waiting(clicks, FAILED) == {"conversion": days, "summary": days}


def test_materialized_partitions_do_not_wait_and_keep_none_waiting(clicks: Asset) -> None:
    made(Asset.objects.get(name="conversion"), "2013-03-06")
    days = "2013-03-05,2013-03-07"
    assert waiting(clicks, FAILED) == {"conversion": days, "summary": days}


def test_a_failed_partition_with_earlier_data_keeps_none_waiting(clicks: Asset) -> None:
    AssetPartition.objects.filter(asset=clicks, key__startswith="2013-03-06").update(version=1)
    assert waiting(clicks, FAILED)["conversion"] == "2013-03-05,2013-03-07"


def test_an_asset_without_partitions_waits_for_needed_ones_alone(clicks: Asset) -> None:
    reads(asset("whatever"), clicks)
    reads(asset("all"), clicks, slicewise.All())
    lines = impacted(clicks, FAILED)
    numbers = {name: len(line.waiting.partitions) for name, line in lines.items() if line.waiting}
    assert numbers["whatever"] == 0
    assert numbers["all"] == 1


@pytest.mark.parametrize("start", ["2013-03-01", None])
def test_all_windows_wait_for_an_asset_without_time(start: str | None) -> None:
    settings = asset("settings")
    daily = reads(asset("days", slicewise.PartitionByInterval("@daily", start=start)), settings)
    made(daily, "2013-03-06")
    chosen = slicewise.PartitionSet.of(None, [slicewise.keys.WHOLE])
    (line,) = impact_of(settings, chosen, NOW).assets
    assert line.waiting
    expected = "2013-03-01..2013-03-05,2013-03-07" if start else "2013-03-07"
    assert line.waiting.partitions.text == expected


def test_the_page_counts_waiting_partitions(clicks: Asset, browser: Client) -> None:
    text = compact(page_at(browser, f"/assets/clicks/impact/?selection={FAILED}"))
    assert ">Waits for these<" in text
    assert '<div class="key">2013-03-05..2013-03-08</div>' in text


def test_the_page_has_no_column_where_none_waits(clicks: Asset, browser: Client) -> None:
    made(clicks, "2013-03-01")
    text = page_at(browser, "/assets/clicks/impact/?selection=2013-03-01")
    assert "Waits for these" not in text
    assert "Waits for these" not in page_at(browser, "/assets/clicks/impact/")


def test_too_many_waiting_partitions_are_an_upper_bound(
    clicks: Asset, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(Asset.objects.get(name="conversion"), "2013-03-06")
    monkeypatch.setattr(impact_waiting, "_MOST_ROWS", 70)
    assert impacted(clicks, FAILED)["conversion"].waiting_bound == ""
    assert impacted(clicks, FAILED)["summary"].waiting_bound == ""
    monkeypatch.setattr(impact_waiting, "_MOST_ROWS", 10)
    lines = impacted(clicks, FAILED)
    assert [lines[name].waiting_bound for name in ("conversion", "summary")] == ["up to"] * 2
    text = compact(page_at(browser, f"/assets/clicks/impact/?selection={FAILED}"))
    assert "up to 3" in text


def test_a_million_partitions_take_a_few_statements() -> None:
    minutes = slicewise.PartitionByInterval("* * * * *", start="2011-01-01")
    events = external("events", minutes)
    hours = reads(asset("hours", HOURLY_2013), events)
    line = impacted(events, "2011..2013-02")[hours.name]
    assert line.waiting
    assert len(line.waiting.partitions) == 59 * 24
    assert line.waiting_bound == "up to"

"""Counts of assets whose definitions have lost partitions that were made."""

from collections import Counter
from datetime import date

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

import slicewise
from assets_app.models import Asset, AssetPartition
from assets_app.queries.counts import StateCounts
from assets_app.queries.overview import asset_statuses
from partitions_app.models import PartitionDefinition
from tests.factories import asset, definition_of
from tests.pages.markup import compact
from tests.partition_records import record

pytestmark = pytest.mark.django_db

DAYS = {"cadence": "@daily", "start": "2013-01-01", "end": "2014-01-01"}
HOURS = {"cadence": "@hourly", "start": "2013-01-01", "end": "2013-02-01"}
REGIONS = ["nord", "ost", "süd", "west"]


def daily(**changes: object) -> slicewise.PartitionDefinition:
    return slicewise.PartitionByInterval(**{**DAYS, **changes})  # type: ignore[arg-type]


def hourly(**changes: object) -> slicewise.PartitionDefinition:
    return slicewise.PartitionByInterval(**{**HOURS, **changes})  # type: ignore[arg-type]


def by_region(*regions: str, **changes: object) -> slicewise.PartitionDefinition:
    return slicewise.PartitionByProduct(
        {"day": daily(**changes), "region": slicewise.PartitionBySequence(list(regions))}
    )


def redefined(was: slicewise.PartitionDefinition, now: slicewise.PartitionDefinition) -> Asset:
    """Create an asset whose partition definition changed after every seventh partition failed."""
    cut = asset("cut", was)
    every = " ".join(f"{name}=*" for name in was.space.names) if was.kind == "product" else "*"
    record(cut, every, lambda place: "materialized" if place % 7 else "failed")
    assert was.identity == now.identity
    cut.partition_definition = PartitionDefinition.of(now.to_json())
    cut.save()
    return cut


def counted_one_by_one(cut: Asset) -> dict[str, int]:
    """Count the states of the partitions that the present definition lists, one by one."""
    present = definition_of(cut).keys()
    texts = [key.text for key in present]
    rows = AssetPartition.objects.filter(asset=cut, identity=cut.identity, key__in=texts)
    return dict(Counter(rows.values_list("state", flat=True)))


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (daily(), daily(start="2013-03-10")),
        (daily(), daily(end="2013-11-20")),
        (daily(), daily(start="2013-03-10", end="2013-03-12")),
        (daily(), daily(exclude=["0 0 * * 6,0", date(2013, 12, 25)])),
        (daily(start="2012-12-24"), daily(start="2013-02-01", exclude=[date(2013, 2, 1)])),
        (daily(timezone="Asia/Tokyo"), daily(timezone="Asia/Tokyo", start="2013-03-02")),
        (hourly(), hourly(start="2013-01-02T05:00", end="2013-01-30T23:00")),
        (hourly(), hourly(exclude=["0 1-5 * * *"])),
        (by_region(*REGIONS), by_region("nord", "süd", "west", "mitte")),
        (by_region(*REGIONS), by_region("west", start="2013-03-10", exclude=["0 0 1 * *"])),
        (
            slicewise.PartitionBySequence(REGIONS),
            slicewise.PartitionBySequence(["nord", "mitte"]),
        ),
        (
            slicewise.PartitionByProduct(
                {
                    "region": slicewise.PartitionBySequence(REGIONS),
                    "kind": slicewise.PartitionBySequence(["a", "b", "c"]),
                }
            ),
            slicewise.PartitionByProduct(
                {
                    "region": slicewise.PartitionBySequence(["ost", "west"]),
                    "kind": slicewise.PartitionBySequence(["b", "d"]),
                }
            ),
        ),
        (daily(start="2013-06-01"), daily()),
    ],
)
def test_only_what_the_present_definition_has_is_counted(
    was: slicewise.PartitionDefinition, now: slicewise.PartitionDefinition
) -> None:
    cut = redefined(was, now)
    counts = counted_one_by_one(cut)
    assert counts
    assert StateCounts([cut]).settled(cut) == counts
    assert asset_statuses([cut])[0].missing == len(list(now.keys())) - sum(counts.values())


def test_an_older_definition_back_in_force_has_its_history_again() -> None:
    cut = redefined(daily(), daily(start="2013-12-01"))
    cut.partition_definition = PartitionDefinition.of(daily().to_json())
    assert sum(StateCounts([cut]).settled(cut).values()) == 365


@pytest.mark.parametrize("bounds", [{"end": "9999-12-31"}, {"start": "0001-01-01", "end": None}])
@pytest.mark.parametrize("cadence", ["@daily", "@monthly"])
def test_a_definition_that_reaches_to_the_end_of_the_calendar_is_counted(
    cadence: str, bounds: dict[str, object]
) -> None:
    endless = asset("endless", daily(cadence=cadence, **bounds))
    record(endless, "2013-01")
    expected = 31 if cadence == "@daily" else 1
    assert StateCounts([endless]).settled(endless) == {"materialized": expected}


def test_many_assets_are_counted_in_as_many_statements_as_one() -> None:
    cut = redefined(daily(), daily(start="2013-12-01", exclude=["0 0 * * 0"]))
    other_assets = [asset(f"other{number}", hourly()) for number in range(3)]
    record(other_assets[0], "2013-01-05")
    with CaptureQueriesContext(connection) as statements:
        counts = StateCounts([cut, *other_assets])
    assert len(statements) == 3
    assert counts.settled(other_assets[0]) == {"materialized": 24}
    assert counts.settled(other_assets[1]) == {}


def test_failures_that_the_definition_has_lost_are_shown_on_no_page(browser: Client) -> None:
    # Every seventh day of 2013 failed: 26 December did not, 24 and 31 December did.
    redefined(daily(), daily(start="2013-12-25", end="2013-12-31"))
    assert "No failed partitions" in browser.get("/").content.decode()
    assert "No matching assets" in browser.get("/assets/?show=failed").content.decode()


def test_failures_that_the_definition_still_has_are_shown_with_their_number(
    browser: Client,
) -> None:
    redefined(daily(), daily(start="2013-12-24", exclude=[date(2013, 12, 31)]))
    overview = compact(browser.get("/").content.decode())
    assert "1 failed</span>partition of" in overview
    assert "/assets/cut/" in overview
    assert "/assets/cut/" in browser.get("/assets/?show=failed").content.decode()


def test_rows_are_read_only_where_a_bound_cuts_a_bucket_that_is_counted() -> None:
    whole_months = asset("months", daily(start="2013-02-01", end="2013-12-01"))
    record(whole_months, "2013-03")
    with CaptureQueriesContext(connection) as statements:
        assert StateCounts([whole_months]).settled(whole_months) == {"materialized": 31}
    assert len(statements) == 2
    record(whole_months, "2013-02, 2013-04..2013-11")
    with CaptureQueriesContext(connection) as statements:
        assert StateCounts([whole_months]).settled(whole_months) == {"materialized": 303}
    assert len(statements) == 2

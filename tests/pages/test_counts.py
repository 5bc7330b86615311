"""Counts of assets whose definitions have lost partitions that were made."""

from collections import Counter
from collections.abc import Sequence
from datetime import date

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

import slicewise
from accounts_app.models import User
from accounts_app.policy import Role
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, AssetPartition, PartitionState, Run, RunState
from assets_app.queries.counts import StateCounts, failed_counts
from assets_app.queries.graph_states import graph_states, numbered_states
from assets_app.queries.overview import asset_statuses
from partitions_app.models import PartitionDefinition
from tests.factories import asset, definition_of, person
from tests.gateways import record_gateway_of_each_queue
from tests.pages.markup import compact, page_at
from tests.pages.run_records import recorded_run
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
    asset_row = asset("cut", was)
    every = " ".join(f"{name}=*" for name in was.space.names) if was.kind == "product" else "*"
    record(asset_row, every, lambda place: "materialized" if place % 7 else "failed")
    assert was.identity == now.identity
    asset_row.partition_definition = PartitionDefinition.of(now.to_json())
    asset_row.save()
    return asset_row


def counted_one_by_one(asset_row: Asset) -> dict[str, int]:
    """Count the states of the partitions that the present definition lists, one by one."""
    present = definition_of(asset_row).keys()
    texts = [key.text for key in present]
    rows = AssetPartition.objects.filter(
        asset=asset_row, identity=asset_row.identity, key__in=texts
    )
    return dict(Counter(rows.values_list("state", flat=True)))


REDEFINITIONS = [
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
]


def hold_all(
    asset_row: Asset, user: User, *, states: Sequence[str] = tuple(PartitionState)
) -> None:
    """Let a queued run hold every third partition of these states, and a running run the others."""
    days = asset("days", daily())
    selections = ("2013-01-01", "2013-01-02")
    requests = [MaterializeRequest(asset=days, selection=selection) for selection in selections]
    queued, running = (materialize(request, user=user).runs.get() for request in requests)
    for state in (RunState.DISPATCHED, RunState.RUNNING):
        Run.objects.filter(pk=running.pk).update(state=state)
    rows = AssetPartition.objects.filter(asset=asset_row, state__in=states)
    keys = list(rows.order_by("pk").values_list("pk", flat=True))
    rows.update(held_by=running)
    rows.filter(pk__in=keys[::3]).update(held_by=queued)


def held_one_by_one(asset_row: Asset) -> dict[str, int]:
    """Count the runs' states of held partitions that the present definition lists, one by one."""
    present = definition_of(asset_row).keys()
    texts = [key.text for key in present]
    rows = AssetPartition.objects.filter(
        asset=asset_row, identity=asset_row.identity, key__in=texts
    )
    return dict(Counter(rows.values_list("held_by__state", flat=True)))


@pytest.mark.parametrize(("was", "now"), REDEFINITIONS)
def test_only_what_the_present_definition_has_is_counted(
    was: slicewise.PartitionDefinition, now: slicewise.PartitionDefinition
) -> None:
    asset_row = redefined(was, now)
    counts = counted_one_by_one(asset_row)
    assert counts
    assert StateCounts([asset_row]).settled(asset_row) == counts
    assert asset_statuses([asset_row])[0].missing == len(list(now.keys())) - sum(counts.values())


@pytest.mark.parametrize(("was", "now"), REDEFINITIONS)
def test_only_what_the_present_definition_has_is_counted_as_under_way(
    was: slicewise.PartitionDefinition, now: slicewise.PartitionDefinition
) -> None:
    asset_row = redefined(was, now)
    hold_all(asset_row, person("olga", Role.OPERATOR))
    held = held_one_by_one(asset_row)
    assert held
    counts = StateCounts([asset_row])
    assert counts.held(asset_row) == sum(held.values())
    assert counts.queued(asset_row) == held.get("queued", 0)


@pytest.mark.parametrize(("was", "now"), REDEFINITIONS)
def test_failed_partitions_that_a_run_holds_again_are_in_progress_and_not_failed(
    was: slicewise.PartitionDefinition, now: slicewise.PartitionDefinition
) -> None:
    asset_row = redefined(was, now)
    counts = counted_one_by_one(asset_row)
    failed = counts.pop("failed", 0)
    missing = asset_statuses([asset_row])[0].missing
    hold_all(asset_row, person("olga", Role.OPERATOR), states=[PartitionState.FAILED])
    assert StateCounts([asset_row]).settled(asset_row) == counts
    assert failed_counts() == {}
    status = asset_statuses([asset_row])[0]
    assert status.held == status.retried == failed
    assert status.missing == missing
    assert dict(status.settled).get("retried", 0) == failed
    assert status.expected is not None
    assert sum(number for _, number in status.settled) == status.expected


def test_the_head_of_an_asset_counts_retried_partitions(browser: Client) -> None:
    days = asset("days", daily())
    record(days, "2013-01-01..2013-01-03", lambda place: "failed")
    holder = recorded_run(days, RunState.QUEUED, "2013-01-01..2013-01-02")
    AssetPartition.objects.exclude(key="2013-01-03").update(held_by=holder)
    head = compact(page_at(browser, "/assets/days/"))
    assert "Failed</span><b>1</b>" in head
    assert "Retried</span><b>2</b>" in head
    assert "2 queued" in head


def test_the_graph_counts_queued_and_running_partitions_apart() -> None:
    asset_row = redefined(daily(), daily(start="2013-03-10"))
    hold_all(asset_row, person("olga", Role.OPERATOR))
    held = held_one_by_one(asset_row)
    assert held["queued"] < held["running"]
    counts = graph_states([asset_row], timezone.now()).counts[asset_row.name]
    assert {state: counts[state] for state in ("queued", "running")} == held
    words = [state.words for state in numbered_states(counts)]
    assert words[:2] == [f"{held['running']} running", f"{held['queued']} queued"]
    only_queued = [state.words for state in numbered_states({"queued": 4, "expected": 4})]
    assert only_queued == ["4 queued"]


def test_assets_of_which_only_lost_partitions_are_under_way_are_not_listed_as_such(
    browser: Client,
) -> None:
    asset_row = redefined(by_region(*REGIONS), by_region("west"))
    hold_all(asset_row, person("olga", Role.OPERATOR))
    AssetPartition.objects.filter(asset__name="days").update(held_by=None)
    for show in ("queued", "running"):
        assert "/assets/cut/" in browser.get(f"/assets/?show={show}").content.decode()
    AssetPartition.objects.filter(segment="west").update(held_by=None)
    for show in ("queued", "running"):
        assert "No matching assets" in browser.get(f"/assets/?show={show}").content.decode()


def test_an_older_definition_back_in_force_has_its_history_again() -> None:
    asset_row = redefined(daily(), daily(start="2013-12-01"))
    asset_row.partition_definition = PartitionDefinition.of(daily().to_json())
    assert sum(StateCounts([asset_row]).settled(asset_row).values()) == 365


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
    asset_row = redefined(daily(), daily(start="2013-12-01", exclude=["0 0 * * 0"]))
    other_assets = [asset(f"other{number}", hourly()) for number in range(3)]
    record(other_assets[0], "2013-01-05")
    with CaptureQueriesContext(connection) as statements:
        counts = StateCounts([asset_row, *other_assets])
    assert len(statements) == 3
    assert counts.settled(other_assets[0]) == {"materialized": 24}
    assert counts.settled(other_assets[1]) == {}


def test_failures_that_the_definition_has_lost_are_shown_on_no_page(browser: Client) -> None:
    # Every seventh day of 2013 failed: 26 December did not, 24 and 31 December did.
    redefined(daily(), daily(start="2013-12-25", end="2013-12-31"))
    record_gateway_of_each_queue()
    assert "No failed partitions" in browser.get("/").content.decode()
    assert "No matching assets" in browser.get("/assets/?show=failed").content.decode()


def test_failures_that_the_definition_still_has_are_shown_with_their_number(
    browser: Client,
) -> None:
    redefined(daily(), daily(start="2013-12-24", exclude=[date(2013, 12, 31)]))
    overview = compact(browser.get("/").content.decode())
    assert "1 failed</a>partition of" in overview
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

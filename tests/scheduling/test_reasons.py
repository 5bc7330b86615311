"""Why a partition is in its state, in words."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts_app.models import User
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, AssetPartition, Gateway, Schedule
from assets_app.queries.reasons import reason_of, reasons_of
from slicewise import PartitionMapping
from tests.factories import AIRPORTS, asset, external
from tests.scheduling.scheduled_assets import (
    DAILY,
    HOURLY,
    at,
    by,
    cron,
    fail,
    make,
    scheduled,
    write,
)

BEGAN = at(2024, 7, 1)
NOW = at(2024, 7, 10)
pytestmark = pytest.mark.django_db


def why(of: Asset, key: str) -> tuple[str, str]:
    """Return the code and the sentence of a partition's reason."""
    reason = reason_of(_fresh(of), key, NOW)
    assert reason is not None
    return reason.code, reason.text


def _fresh(of: Asset) -> Asset:
    return Asset.objects.select_related("producer__schedule", "partition_definition").get(pk=of.pk)


def activated(of: Asset) -> Asset:
    """Let an asset be activated when its schedule began."""
    Asset.objects.filter(pk=of.pk).update(activated_at=BEGAN)
    return of


def test_a_missing_partition_tells_the_first_cause_that_holds() -> None:
    days = activated(scheduled("days", cron("@daily"), DAILY, since=BEGAN))
    assert why(days, "2024-06-30")[0] == "before_activation"
    assert "activated at 2024-07-01 00:00 UTC" in why(days, "2024-06-30")[1]
    assert why(days, "2024-07-10") == (
        "not_yet_due", "The time window ends at 2024-07-11 00:00 UTC.",
    )  # fmt: skip
    assert why(days, "2024-07-03")[0] == "waiting_for_tick"
    Schedule.objects.update(handled_until=at(2024, 7, 5))
    assert why(days, "2024-07-03")[0] == "not_queued"
    Asset.objects.update(paused=True)
    assert why(days, "2024-06-30")[0] == "before_activation"
    assert why(days, "2024-07-03")[0] == "not_queued"
    assert why(days, "2024-07-07")[0] == "paused"
    Asset.objects.update(active=False)
    assert why(days, "2024-07-03")[0] == "removed"
    assert why(asset("by_hand", DAILY), "2024-07-03")[0] == "no_schedule"
    assert why(external("elsewhere", DAILY), "2024-07-03")[0] == "external"
    assert why(asset("whole"), "")[0] == "no_schedule"
    assert reason_of(days, "2024-07-03T05", NOW) is None


def test_a_window_that_ended_during_a_pause_tells_the_pause() -> None:
    days = activated(scheduled("days", cron("@daily"), DAILY, since=BEGAN))
    unpaused_at = at(2024, 7, 7, 6)
    Schedule.objects.update(
        handled_before_pause=at(2024, 7, 5), paused_at=at(2024, 7, 5, 6),
        unpaused_at=unpaused_at, handled_until=unpaused_at, began_at=unpaused_at,
        missed_spans=[[at(2024, 7, 5).isoformat(), unpaused_at.isoformat()]],
    )  # fmt: skip
    assert why(days, "2024-07-04")[0] == "not_queued"
    assert why(days, "2024-07-05") == (
        "missed_while_paused",
        "The partition came due while the asset was paused, from 2024-07-05 06:00 UTC to"
        " 2024-07-07 06:00 UTC: the schedule does not queue the partition any more.",
    )
    assert why(days, "2024-07-06")[0] == "missed_while_paused"
    assert why(days, "2024-07-07")[0] == "waiting_for_tick"


def test_a_missing_partition_waits_for_some_of_its_upstream_partitions(
    alice: User, gateway: Gateway
) -> None:
    hours = asset("hours", HOURLY)
    days = activated(scheduled("days", by("hours"), DAILY, since=BEGAN, upstream={"hours": None}))
    write(hours, "2024-07-03T00:00Z..2024-07-03T21:00Z", gateway, alice)
    assert why(days, "2024-07-03") == (
        "waiting_for_upstream",
        "Waiting for 2 of 24 of hours: hours 2024-07-03T22:00Z, hours 2024-07-03T23:00Z.",
    )
    assert why(days, "2024-07-04")[1].endswith("hours 2024-07-04T02:00Z and 21 more.")
    group = materialize(MaterializeRequest(asset=hours, selection="2024-07-03T23:00Z"), user=alice)
    run = group.runs.get()
    fail(run, gateway)
    code, text = why(days, "2024-07-03")
    assert (code, text) == (
        "upstream_failed", f"Upstream failed: hours 2024-07-03T23:00Z (run {run.pk}).",
    )  # fmt: skip
    reason = reason_of(_fresh(days), "2024-07-03", NOW)
    assert reason is not None
    assert [(need.asset.name, need.text) for need in reason.needs] == [("hours", "22 of 24")]
    assert why(hours, "2024-07-03T23:00Z")[0] == "failed"


def test_a_partition_of_a_run_names_the_run(alice: User, gateway: Gateway) -> None:
    days = asset("days", DAILY)
    run = materialize(MaterializeRequest(asset=days, selection="2024-07-03"), user=alice).runs.get()
    assert why(days, "2024-07-03") == ("queued", f"Run {run.pk} is queued.")
    make(run, gateway)
    assert why(days, "2024-07-03") == ("materialized", "Version 1 is up to date.")
    AssetPartition.objects.update(state="canceled")
    assert why(days, "2024-07-03") == ("canceled", f"Run {run.pk} was canceled.")


def test_a_stale_partition_names_the_newer_data(alice: User, gateway: Gateway) -> None:
    hours = asset("hours", HOURLY)
    days = scheduled("days", by("hours"), DAILY, since=BEGAN, upstream={"hours": None})
    write(hours, "2024-07-03", gateway, alice)
    write(days, "2024-07-03", gateway, alice)
    write(hours, "2024-07-03T05:00Z", gateway, alice)
    code, text = why(days, "2024-07-03")
    assert (code, text) == (
        "stale", "Upstream data has changed since: hours 2024-07-03T05:00Z is newer.",
    )  # fmt: skip


def test_the_reasons_of_a_page_take_as_many_statements_as_the_reason_of_one(
    alice: User, gateway: Gateway
) -> None:
    hours, airports = asset("hours", HOURLY), asset("airports", AIRPORTS)
    names: dict[str, PartitionMapping | None] = {hours.name: None, airports.name: None}
    days = activated(scheduled("days", by("hours"), DAILY, since=BEGAN, upstream=names))
    write(hours, "2024-07-03T00:00Z..2024-07-03T02:00Z", gateway, alice)
    fresh = _fresh(days)
    counts = []
    for keys in (["2024-07-03"], [f"2024-07-{day:02}" for day in range(1, 10)]):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert len(reasons_of(fresh, keys, NOW)) == len(keys)
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 7

"""Why a partition is in its state, in words."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts_app.models import User
from assets_app.catalogue.timetables import pause_schedule
from assets_app.execution.request.forgetting import forget_partitions
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import (
    Asset,
    AssetDependency,
    AssetPartition,
    Gateway,
    Materialization,
    Outbox,
    Run,
    RunState,
    Schedule,
    Target,
    Trigger,
)
from assets_app.queries import upstream_needs
from assets_app.queries.reason_texts import moment_text
from assets_app.queries.reasons import reason_of, reasons_of
from assets_app.scheduling.affected import NewPartition, affected
from assets_app.scheduling.partition_marks import mark_due_later, mark_skipped
from slicewise import (
    All,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    PartitionMapping,
    PartitionSet,
)
from slicewise.partitions import partition_rows
from tests.factories import AIRPORTS, asset, external, together
from tests.partition_records import made
from tests.runtime_keys import CUSTOMERS, find_keys
from tests.scheduling.beats import look, written
from tests.scheduling.scheduled_assets import (
    DAILY,
    HOURLY,
    after,
    all_of,
    any_of,
    at,
    by,
    cron,
    fail,
    fresh,
    make,
    scheduled,
    waiting,
    write,
)

BEGAN = at(2024, 7, 1)
NOW = at(2024, 7, 10)
pytestmark = pytest.mark.django_db


def why(of: Asset, key: str, now: datetime = NOW) -> tuple[str, str]:
    """Return the code and the sentence of a partition's reason."""
    reason = reason_of(_fresh(of), key, now)
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
        "Waiting for 2 of 24 partitions of hours: hours 2024-07-03T22:00Z,"
        " hours 2024-07-03T23:00Z.",
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
    # The run that wrote the partition is not the cause.
    reason = reason_of(_fresh(days), "2024-07-03", NOW)
    assert reason
    assert reason.run is None


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


# ---------------------------------------------------------------- schedules by assets

NOT_DUE_BY_BACKFILLS = "The upstream partitions came from a backfill, which triggers nothing."
NEXT_STEP = "Materialize the partition now, or start a backfill."


def backfilled(of: Asset, selection: str, gateway: Gateway, user: User) -> None:
    """Write partitions as a backfill does."""
    write(of, selection, gateway, user)
    Run.objects.filter(asset=of).update(trigger=Trigger.BACKFILL)
    Outbox.objects.filter(run__asset=of).delete()


def report(*, since: int = 1) -> Asset:
    """Create a report that waits six hours for b, with a schedule that began on a day of July."""
    waits = any_of(all_of(by("a"), by("b")), all_of(by("a"), after(timedelta(hours=6))))
    return scheduled("report", waits, DAILY, since=at(2024, 7, since))


def test_upstream_data_of_a_backfill_is_told_as_the_cause_and_the_missing_input_is_not(
    alice: User, gateway: Gateway
) -> None:
    a, _, late = asset("a", DAILY), asset("b", DAILY), report(since=9)
    backfilled(a, "2024-07-03", gateway, alice)
    assert why(late, "2024-07-03") == (
        "not_triggered",
        f"{NOT_DUE_BY_BACKFILLS} The time window ended before the schedule began at 2024-07-09"
        " 00:00 UTC: a time alone does not make the partition due. The next write of a needed"
        f" partition of a or b by a schedule, a person or a report makes the partition due."
        f" {NEXT_STEP}",
    )
    look(at(2024, 7, 9))
    write(a, "2024-07-03", gateway, alice)
    look(NOW)
    assert Run.objects.filter(asset=late).count() == 1


def test_a_partition_of_upstream_partitions_that_backfills_wrote_tells_the_backfills(
    alice: User, gateway: Gateway
) -> None:
    a, b = asset("a", DAILY), asset("b", DAILY)
    both = scheduled("both", all_of(by("a"), by("b")), DAILY, since=BEGAN)
    backfilled(a, "2024-07-03..2024-07-04", gateway, alice)
    assert why(both, "2024-07-03") == (
        "waiting_for_upstream", "Waiting for 1 of 1 partition of b: b 2024-07-03.",
    )  # fmt: skip
    write(b, "2024-07-03", gateway, alice)
    assert why(both, "2024-07-03")[1].startswith(
        "Upstream partitions of a came from a backfill, which triggers nothing. The next write"
    )
    backfilled(b, "2024-07-04", gateway, alice)
    assert why(both, "2024-07-04")[1].startswith(f"{NOT_DUE_BY_BACKFILLS} The next write")
    Run.objects.update(trigger=Trigger.MANUAL)
    assert why(both, "2024-07-04")[1].startswith("No write of an upstream partition has made")
    Materialization.objects.update(created_at=at(2024, 6, 30))
    Schedule.objects.update(paused_at=at(2024, 6, 29), unpaused_at=at(2024, 6, 30, 1))
    assert "materialized while the asset was paused, from 2024-06-29" in why(both, "2024-07-04")[1]
    Schedule.objects.update(paused_at=None, unpaused_at=None, began_at=BEGAN)
    assert "before the schedule began at 2024-07-01" in why(both, "2024-07-04")[1]


def test_the_way_that_lacks_the_least_tells_the_reason_and_the_other_ways_are_named(
    alice: User, gateway: Gateway
) -> None:
    a, b = asset("a", DAILY), asset("b", DAILY)
    late = report()
    assert why(late, "2024-07-03")[1] == "Waiting for 1 of 1 partition of a: a 2024-07-03."
    write(b, "2024-07-08", gateway, alice)
    write(a, "2024-07-09", gateway, alice)
    look(NOW - timedelta(hours=1))
    assert why(late, "2024-07-08")[1] == "Waiting for 1 of 1 partition of a: a 2024-07-08."
    assert why(late, "2024-07-09") == (
        "waiting_for_tick",
        "Due at the tick of the schedule at 2024-07-10 06:00 UTC. Another way of the schedule waits"
        " for b.",
    )
    either = scheduled("either", any_of(by("a"), by("b")), DAILY, since=BEGAN)
    assert why(either, "2024-07-03")[1] == (
        "Waiting for 1 of 1 partition of a: a 2024-07-03. Another way of the schedule waits for b."
    )


def test_a_partition_that_waits_for_fresh_data_says_so(alice: User, gateway: Gateway) -> None:
    a, model = asset("a", DAILY), asset("model")
    within = timedelta(hours=1)
    waits = all_of(by("a"), fresh("model", within))
    scores = scheduled("scores", waits, DAILY, since=BEGAN, upstream={"model": None})
    write(a, "2024-07-03", gateway, alice)
    write(model, "", gateway, alice)
    AssetPartition.objects.filter(asset=model).update(materialized_at=NOW - 2 * within)
    # Fresh data makes due only a partition that the scheduler has examined.
    assert why(scores, "2024-07-03")[0] == "not_triggered"
    look(NOW)
    assert why(scores, "2024-07-03") == ("waiting_for_fresh", "Waiting for fresh data of model.")
    AssetPartition.objects.filter(asset=model).update(materialized_at=NOW)
    assert why(scores, "2024-07-03")[0] == "not_triggered"


def test_a_paused_asset_tells_also_what_the_partition_lacks_after_the_pause(
    alice: User, gateway: Gateway
) -> None:
    days = asset("days", PartitionByInterval("@daily", start="2024-06-15"))
    monthly = PartitionByInterval("@monthly", start="2024-01-01")
    months = scheduled("months", by("days"), monthly, since=BEGAN)
    gap = (
        "Needed upstream partitions do not exist: days, 14 do not exist: 2024-06-01 to 2024-06-14."
        " The schedule never makes the partition due."
    )
    assert why(months, "2024-06-01") == ("upstream_does_not_exist", gap)
    both = scheduled("both", by("days"), DAILY, since=BEGAN)
    Asset.objects.update(paused=True)
    pause = "The asset is paused: the schedule queues no run."
    assert why(months, "2024-06-01") == ("paused", f"{pause} {gap}")
    waits = "Waiting for 1 of 1 partition of days: days 2024-07-03."
    assert why(both, "2024-07-03")[1] == f"{pause} {waits}"
    backfilled(days, "2024-07-03", gateway, alice)
    assert why(both, "2024-07-03")[1].startswith(f"{pause} Unpausing does not make")


# ---------------------------------------------------------------- ticks to come

SIX = cron("0 6 * * *")
PAUSED = "The asset is paused: the schedule queues no run."


def due_at(moment: datetime) -> tuple[str, str]:
    """Return the reason of a partition that a tick makes due."""
    return "waiting_for_tick", f"Due at the tick of the schedule at {moment_text(moment)}."


@pytest.mark.parametrize(
    "schedule",
    [
        any_of(all_of(by("a"), by("b")), all_of(by("a"), after(timedelta(hours=6)))),
        any_of(by("a"), SIX),
        any_of(all_of(by("a"), SIX), by("a")),
    ],
)
def test_the_tick_of_a_way_with_a_time_is_told_beside_a_ready_way_without_one(
    schedule: dict[str, Any], alice: User, gateway: Gateway
) -> None:
    a, b = asset("a", DAILY), asset("b", DAILY)
    waits = scheduled("waits", schedule, DAILY, since=at(2024, 7, 9, 12))
    look(NOW - timedelta(hours=1))
    backfilled(a, "2024-07-09", gateway, alice)
    backfilled(b, "2024-07-09", gateway, alice)
    assert why(waits, "2024-07-09") == due_at(at(2024, 7, 10, 6))
    look(at(2024, 7, 10, 5, 59))
    assert waiting(waits) == []
    look(at(2024, 7, 10, 6))
    assert waiting(waits) == ["2024-07-09"]


@pytest.mark.parametrize(
    "schedule",
    [
        any_of(all_of(by("a"), after(timedelta(hours=1))), all_of(by("a"), SIX)),
        any_of(
            all_of(by("a"), after(timedelta(hours=1))), all_of(by("a"), after(timedelta(hours=6)))
        ),
        any_of(all_of(by("a"), cron("0 1 * * *")), all_of(by("a"), cron("0 1 * * *"), SIX)),
    ],
)
def test_a_tick_that_is_past_hides_no_later_tick_of_another_way(
    schedule: dict[str, Any], alice: User, gateway: Gateway
) -> None:
    a = asset("a", DAILY)
    waits = scheduled("waits", schedule, DAILY, since=BEGAN)
    now = at(2024, 7, 10, 3)
    look(now)
    backfilled(a, "2024-07-09", gateway, alice)
    assert why(waits, "2024-07-09", now) == due_at(at(2024, 7, 10, 6))
    look(at(2024, 7, 10, 6))
    assert waiting(waits) == ["2024-07-09"]
    assert why(waits, "2024-07-08", now)[0] == "waiting_for_upstream"


def test_a_tick_that_no_earlier_tick_puts_the_window_off_to_is_not_told(
    alice: User, gateway: Gateway
) -> None:
    a, half_a_day = asset("a", DAILY), timedelta(hours=12)
    waits = scheduled("waits", all_of(by("a"), after(half_a_day), SIX), DAILY, since=BEGAN)
    early, late = at(2024, 7, 10, 11), at(2024, 7, 10, 13)
    backfilled(a, "2024-07-09", gateway, alice)
    look(early)
    assert why(waits, "2024-07-09", early)[0] == "waiting_for_tick"
    AssetPartition.objects.filter(asset=waits).delete()
    look(late)
    AssetPartition.objects.filter(asset=waits).delete()
    assert why(waits, "2024-07-09", late)[0] == "not_triggered"
    look(at(2024, 7, 11, 6))
    assert waiting(waits) == []


def test_a_partition_without_a_window_is_due_at_the_next_tick_of_its_own_way(
    alice: User, gateway: Gateway
) -> None:
    a, _ = asset("a"), asset("b")
    ways = any_of(all_of(by("a"), SIX), all_of(by("b"), cron("0 12 * * *")))
    waits = scheduled("waits", ways, since=BEGAN)
    now = at(2024, 7, 10, 7)
    look(now)
    backfilled(a, "", gateway, alice)
    code, text = why(waits, "", now)
    assert (code, text.partition(".")[0]) == (
        "waiting_for_tick", "Due at the tick of the schedule at 2024-07-11 06:00 UTC",
    )  # fmt: skip
    look(at(2024, 7, 10, 12))
    assert waiting(waits) == []
    look(at(2024, 7, 11, 6))
    assert len(waiting(waits)) == 1


def test_unpausing_makes_a_partition_without_a_window_due_at_the_next_tick(
    alice: User, gateway: Gateway
) -> None:
    a = asset("a")
    waits = scheduled("waits", all_of(by("a"), SIX), since=BEGAN)
    look(NOW - timedelta(hours=1))
    paused_at(waits, NOW - timedelta(minutes=30))
    backfilled(a, "", gateway, alice)
    assert why(waits, "") == (
        "paused",
        f"{PAUSED} If the asset is unpaused in time: due at the tick of the schedule at 2024-07-10"
        " 06:00 UTC.",
    )
    unpaused_at(waits, NOW)
    look(at(2024, 7, 10, 6))
    assert len(waiting(waits)) == 1


@pytest.mark.parametrize("hour", [3, 7])
def test_unpausing_makes_no_window_due_that_has_ended(
    hour: int, alice: User, gateway: Gateway
) -> None:
    a = asset("a", DAILY)
    waits = scheduled("waits", all_of(by("a"), SIX), DAILY, since=BEGAN)
    look(NOW - timedelta(hours=1))
    paused_at(waits, NOW - timedelta(minutes=30))
    backfilled(a, "2024-07-09", gateway, alice)
    now = at(2024, 7, 10, hour)
    assert why(waits, "2024-07-09", now) == (
        "paused",
        f"{PAUSED} Unpausing does not make the partition due: materialize the partition, or start a"
        " backfill.",
    )
    unpaused_at(waits, now)
    for day in (10, 11):
        look(at(2024, 7, day, 8))
    assert waiting(waits) == []


def test_a_window_that_was_put_off_before_the_pause_is_due_if_the_pause_ends_in_time(
    alice: User, gateway: Gateway
) -> None:
    a = asset("a", DAILY)
    waits = scheduled("waits", all_of(by("a"), SIX), DAILY, since=BEGAN)
    write(a, "2024-07-09", gateway, alice)
    look(NOW)
    paused_at(waits, NOW)
    code, text = why(waits, "2024-07-09")
    assert code == "paused"
    assert text.endswith("in time: due at the tick of the schedule at 2024-07-10 06:00 UTC.")
    unpaused_at(waits, at(2024, 7, 10, 2))
    look(at(2024, 7, 10, 6))
    assert waiting(waits) == ["2024-07-09"]


def paused_at(of: Asset, moment: datetime) -> None:
    """Pause an asset at a moment."""
    Asset.objects.filter(pk=of.pk).update(paused=True)
    with transaction.atomic():
        pause_schedule(of, paused=True, now=moment)


def unpaused_at(of: Asset, moment: datetime) -> None:
    """Unpause an asset at a moment."""
    Asset.objects.filter(pk=of.pk).update(paused=False)
    with transaction.atomic():
        pause_schedule(of, paused=False, now=moment)


# ---------------------------------------------------------------- ready, missing and not counted


def test_an_asset_of_which_any_partition_suffices_is_missing_without_a_partition(
    alice: User, gateway: Gateway
) -> None:
    events = asset("events", DAILY)
    summary = scheduled("summary", all_of(by("events"), SIX), since=BEGAN)
    news = scheduled("news", all_of(fresh("events", timedelta(hours=1)), SIX), since=BEGAN)
    either = scheduled("either", any_of(by("events"), SIX), since=NOW)
    look(NOW)
    assert why(summary, "") == (
        "waiting_for_upstream", "No partition of events is materialized yet.",
    )  # fmt: skip
    assert why(news, "") == ("waiting_for_fresh", "Waiting for fresh data of events.")
    assert why(either, "")[1].endswith("06:00 UTC. Another way of the schedule waits for events.")
    backfilled(events, "2024-07-03", gateway, alice)
    AssetPartition.objects.filter(asset=events).update(materialized_at=NOW)
    due = due_at(at(2024, 7, 10, 6))
    assert why(summary, "") == why(either, "") == due
    assert why(news, "") == (
        "waiting_for_fresh",
        "Waiting for fresh data of events: at the next tick for the partition, at 2024-07-10 06:00"
        " UTC, the data of events is too old.",
    )
    AssetPartition.objects.filter(asset=events).update(materialized_at=at(2024, 7, 10, 5))
    assert why(news, "") == due
    AssetPartition.objects.filter(asset=events).update(materialized_at=BEGAN)
    assert why(news, "") == ("waiting_for_fresh", "Waiting for fresh data of events.")


def test_an_asset_of_which_all_of_time_is_needed_is_missing_without_a_partition(
    alice: User, gateway: Gateway
) -> None:
    days = asset("days", DAILY)
    airports = scheduled("airports", all_of(by("days"), SIX), AIRPORTS, since=BEGAN)
    look(NOW)
    assert why(airports, "JFK") == (
        "waiting_for_upstream", "No partition of days is materialized yet.",
    )  # fmt: skip
    backfilled(days, "2024-07-09", gateway, alice)
    assert why(airports, "JFK") == due_at(at(2024, 7, 10, 6))


def test_partitions_that_are_too_many_to_be_counted_are_neither_missing_nor_ready(
    monkeypatch: pytest.MonkeyPatch, alice: User, gateway: Gateway
) -> None:
    hours = asset("hours", HOURLY)
    asset("b", DAILY)
    days = scheduled("days", all_of(by("hours"), SIX), DAILY, since=BEGAN)
    other = any_of(by("hours"), all_of(by("b"), SIX))
    either = scheduled("either", other, DAILY, since=BEGAN)
    fresh_days = scheduled(
        "fresh_days", all_of(fresh("hours", timedelta(hours=1)), SIX), DAILY, since=BEGAN
    )
    look(NOW - timedelta(hours=1))
    backfilled(hours, "2024-07-09", gateway, alice)
    monkeypatch.setattr(upstream_needs, "_MOST_NEEDED", 23)
    not_counted = (
        "not_counted",
        "The needed upstream partitions are too many to be counted here: 24 partitions of hours.",
    )
    assert why(days, "2024-07-09") == why(fresh_days, "2024-07-09") == not_counted
    code, text = why(either, "2024-07-09")
    assert (code, text) == (
        "not_counted", f"{not_counted[1]} Another way of the schedule waits for b.",
    )  # fmt: skip
    monkeypatch.setattr(upstream_needs, "_MOST_NEEDED", 24)
    assert why(days, "2024-07-09") == due_at(at(2024, 7, 10, 6))


def test_each_partition_of_a_page_has_room_of_its_own_for_upstream_partitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asset("hours", HOURLY)
    days = activated(scheduled("days", by("hours"), DAILY, since=BEGAN))
    keys = [f"2024-07-0{day}" for day in range(1, 4)]
    monkeypatch.setattr(upstream_needs, "_MOST_NEEDED", 24)
    codes = [reason.code for reason in reasons_of(_fresh(days), keys, NOW).values()]
    assert codes == ["waiting_for_upstream"] * 3
    monkeypatch.setattr(upstream_needs, "_MOST_OF_ALL_KEYS", 60)
    codes = [reason.code for reason in reasons_of(_fresh(days), keys, NOW).values()]
    assert codes == ["waiting_for_upstream", "waiting_for_upstream", "not_counted"]


def test_a_waiting_run_waits_for_the_previous_partition_and_not_for_upstream_data(
    gateway: Gateway,
) -> None:
    asset("rates", DAILY)
    days = scheduled(
        "days", cron("@daily"), DAILY, since=at(2024, 7, 2), upstream={"rates": None},
        depends_on_past=True,
    )  # fmt: skip
    look(at(2024, 7, 3))
    look(at(2024, 7, 4))
    first, second = Run.objects.order_by("id")
    assert (second.state, second.selection) == (RunState.WAITING, "2024-07-03")
    assert why(days, "2024-07-03") == (
        "waiting",
        f"Run {second.pk} waits for the previous partition 2024-07-02 (run {first.pk}, queued).",
    )
    make(first, gateway)
    Run.objects.filter(pk=second.pk).update(state=RunState.WAITING)
    assert why(days, "2024-07-03") == ("waiting", f"Run {second.pk} is about to be queued.")


# ---------------------------------------------------------------- schedules that fail


def test_a_schedule_that_cannot_be_read_any_more_is_told_with_the_error(
    alice: User, gateway: Gateway
) -> None:
    a = asset("a", DAILY)
    waits = scheduled("waits", all_of(by("a"), SIX), DAILY, since=BEGAN)
    backfilled(a, "2024-07-09", gateway, alice)
    moon = all_of(by("a"), cron("0 6 * * *", timezone="Moon/Base"))
    Schedule.objects.update(rule={"schedule": moon})
    code, text = why(waits, "2024-07-09")
    assert code == "schedule_unreadable"
    assert text.startswith("The schedule cannot be evaluated: ")
    assert "Moon/Base" in text
    Asset.objects.update(paused=True)
    assert why(waits, "2024-07-09") == ("paused", f"{PAUSED} {text}")


def test_a_partition_put_off_by_a_failure_tells_the_failure_and_no_tick(
    alice: User, gateway: Gateway
) -> None:
    a = asset("a", DAILY)
    waits = scheduled("waits", by("a"), DAILY, since=BEGAN)
    ticking = scheduled("ticking", all_of(by("a"), SIX), DAILY, since=BEGAN)
    look(NOW)
    backfilled(a, "2024-07-09", gateway, alice)
    retry_at = NOW + timedelta(minutes=2)
    for own in (waits, ticking):
        (row,) = partition_rows(DAILY, PartitionSet.of(DAILY, [DAILY.parse("2024-07-09")]))
        mark_due_later(Target(own), [row], retry_at)
    again = "The schedule is evaluated again at 2024-07-10 00:02 UTC."
    tick = "Due at the tick of the schedule at 2024-07-10 06:00 UTC."
    assert why(waits, "2024-07-09") == ("evaluated_again", again)
    assert why(ticking, "2024-07-09") == ("evaluated_again", f"{again} {tick}")
    Schedule.objects.update(
        failing_since=NOW, failures=1, retry_at=retry_at, error="KeyError: password=hush\nmore"
    )
    failed = "The evaluation of the schedule failed: KeyError: password=***."
    assert why(waits, "2024-07-09")[1] == f"{failed} {again}"
    AssetPartition.objects.filter(asset=waits).delete()
    code, text = why(waits, "2024-07-09")
    assert code == "not_triggered"
    assert text.startswith(f"{failed} {NOT_DUE_BY_BACKFILLS} The next write")
    Run.objects.update(trigger=Trigger.MANUAL)
    assert why(waits, "2024-07-09") == ("evaluated_again", f"{failed} {again}")
    assert why(waits, "2024-07-08")[0] == "waiting_for_upstream"


def test_a_failure_promises_no_evaluation_that_is_past_or_that_a_pause_prevents(
    alice: User, gateway: Gateway
) -> None:
    a = asset("a", DAILY)
    waits = scheduled("waits", by("a"), DAILY, since=BEGAN)
    write(a, "2024-07-09", gateway, alice)
    failing: dict[str, Any] = {"failing_since": NOW, "failures": 1, "error": "KeyError: x"}
    Schedule.objects.update(**failing, retry_at=NOW + timedelta(minutes=2))
    failed = "The evaluation of the schedule failed: KeyError: x."
    again = "The schedule is evaluated again at 2024-07-10 00:02 UTC."
    assert why(waits, "2024-07-09") == ("evaluated_again", f"{failed} {again}")
    Schedule.objects.update(retry_at=NOW - timedelta(minutes=2))
    assert why(waits, "2024-07-09") == ("evaluated_again", failed)
    paused_at(waits, NOW)
    assert why(waits, "2024-07-09") == (
        "paused",
        f"{PAUSED} Unpausing does not make the partition due: materialize the partition, or start a"
        " backfill.",
    )


@pytest.mark.parametrize(
    "address",
    [
        "/assets/waits/partitions/2024-07-09/",
        "/assets/waits/?tab=schedule",
        "/api/v1/assets/waits/partitions/",
    ],
)
@pytest.mark.parametrize("is_paused", [False, True])
def test_pages_of_an_asset_whose_schedule_cannot_be_read_answer(
    address: str, is_paused: bool, alice: User, client: Client
) -> None:
    asset("a", DAILY)
    waits = scheduled("waits", all_of(by("a"), SIX), DAILY, since=BEGAN)
    if is_paused:
        paused_at(waits, NOW)
    moon = all_of(by("a"), cron("0 6 * * *", timezone="Moon/Base"))
    Schedule.objects.update(rule={"schedule": moon})
    client.force_login(alice)
    assert client.get(address).status_code == 200


def test_a_write_that_concerns_later_windows_alone_is_no_promise(
    alice: User, gateway: Gateway, settings: Any
) -> None:
    config = asset("config")
    days = scheduled("days", by("config"), DAILY, since=BEGAN, upstream={"config": None})
    write(config, "", gateway, alice)
    promise = "The next write of a needed partition of config"
    for written_at, expected in ((at(2024, 7, 3), True), (at(2024, 7, 5), False)):
        Run.objects.update(trigger=Trigger.MANUAL)
        Materialization.objects.update(created_at=written_at)
        # Another program may have reported a write of long ago.
        AssetPartition.objects.filter(asset=config).update(materialized_at=at(2024, 7, 2))
        text = why(days, "2024-07-03")[1]
        assert (promise in text) is expected, text
        assert text.endswith("Materialize the partition now, or start a backfill.")
        # The scheduler finds the same.
        new = NewPartition(
            write=(None, None), asset_id=config.pk, identity=config.identity, key="", at=NOW,
            before=written_at,
        )  # fmt: skip
        dependency = AssetDependency.objects.get(downstream=days)
        concerned = affected(dependency, Target(_fresh(days)), [new], since=BEGAN, now=NOW)
        assert ("2024-07-03" in {key.text for key in concerned}) is expected
    Materialization.objects.update(created_at=at(2024, 7, 3))
    assert why(days, "2024-07-03")[1].startswith(
        "The last write came before the time window ended. The next write"
    )
    settings.MAX_PARTITIONS_PER_TICK = 3
    newest = "A write of config makes due only the newest 3 partitions that"
    assert newest in why(days, "2024-07-03")[1]
    assert promise not in why(days, "2024-07-03")[1]
    assert promise in why(days, "2024-07-08")[1]


def test_a_window_that_no_write_is_known_to_concern_is_not_counted(
    monkeypatch: pytest.MonkeyPatch, alice: User, gateway: Gateway
) -> None:
    config = asset("config")
    asset("hours", HOURLY)
    days = scheduled(
        "days", all_of(by("hours"), by("config")), DAILY, since=BEGAN,
        upstream={"hours": None, "config": None},
    )  # fmt: skip
    monkeypatch.setattr(upstream_needs, "_MOST_NEEDED", 23)
    written(config, "", at(2024, 7, 6), gateway, alice)
    # The next write of config concerns later windows alone, and the hours may be written yet.
    assert why(days, "2024-07-03")[0] == "not_counted"


def test_partitions_that_do_not_exist_are_told_of_a_window_that_no_write_concerns() -> None:
    asset("regions", PartitionBySequence(["eu", "us"], name="region"))
    by_region = PartitionByProduct(
        {"day": DAILY, "region": PartitionBySequence(["eu", "us", "zz"], name="region")}
    )
    days = scheduled("days", by("regions"), by_region, since=at(2024, 7, 5))
    for day in ("2024-07-03", "2024-07-08"):
        code, text = why(days, f"{day}|zz")
        assert code == "upstream_does_not_exist", text
        assert "The schedule never makes the partition due." in text


@pytest.mark.parametrize("is_one_function", [False, True])
def test_one_run_that_writes_several_upstream_assets_queues_the_newest_of_all(
    is_one_function: bool, settings: Any
) -> None:
    settings.MAX_PARTITIONS_PER_TICK = 3
    if is_one_function:
        _, b = together("split", ["a", "b"], DAILY)
    else:
        asset("a", DAILY)
        b = asset("b", DAILY)
    made(b, "2024-07-02")
    x = scheduled(
        "x", any_of(by("a"), by("b")), DAILY, since=BEGAN, upstream={"a": None, "b": All()}
    )
    code, text = why(x, "2024-07-03")
    newest = "makes due only the newest 3 partitions that need the written ones."
    if is_one_function:
        assert (code, f"A write of a or b {newest}" in text) == ("not_triggered", True)
    else:
        assert code == "waiting_for_upstream"


def test_a_mapping_that_fails_is_no_reason_to_refuse_the_page(
    monkeypatch: pytest.MonkeyPatch, alice: User, gateway: Gateway
) -> None:
    config = asset("config")
    days = scheduled("days", by("config"), DAILY, since=BEGAN, upstream={"config": None})
    written(config, "", at(2024, 7, 2), gateway, alice)

    def fail(*_: Any, **__: Any) -> None:
        raise KeyError("a mapping of a package")

    monkeypatch.setattr("assets_app.queries.write_reach.concerned_partitions", fail)
    code, text = why(days, "2024-07-03")
    assert code == "not_triggered"
    assert "next write" not in text


def test_a_write_before_a_run_that_discovers_partitions_promises_no_key() -> None:
    asset("days", DAILY)
    found = scheduled("found", by("days"), CUSTOMERS, since=BEGAN)
    find_keys(CUSTOMERS, "k1")
    code, text = why(found, "k1")
    assert code == "not_triggered"
    assert text.startswith("A write of days queues a run that discovers partitions:")


def test_a_window_that_no_write_concerns_waits_for_no_write() -> None:
    asset("config")
    days = scheduled("days", by("config"), DAILY, since=BEGAN, upstream={"config": None})
    assert why(days, "2024-07-03")[0] == "waiting_for_upstream"
    code, text = why(days, "2024-06-20")
    assert code == "not_triggered"
    assert "makes due only time windows that ended since the schedule began at 2024-07-01" in text
    Asset.objects.filter(pk=days.pk).update(paused=True)
    assert "Unpausing does not make the partition due" in why(days, "2024-07-03")[1]


def test_a_tick_that_leaves_a_forgotten_partition_out_is_no_skip_by_its_last_run(
    alice: User, gateway: Gateway
) -> None:
    days = asset("days", DAILY)
    run = materialize(MaterializeRequest(asset=days, selection="2024-07-02"), user=alice).runs.get()
    make(run, gateway)
    forget_partitions(days, "2024-07-02", user=alice)
    row = AssetPartition.objects.get(key="2024-07-02")
    assert (row.state, row.last_run) == ("missing", run)
    requested = partition_rows(DAILY, DAILY.select("2024-07-02"))
    mark_skipped([(Target(days), one) for one in requested])
    assert why(days, "2024-07-02") == (
        "skipped", "A tick left the partition out: it queued the latest only.",
    )  # fmt: skip

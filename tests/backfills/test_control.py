"""Holding back, letting go on, stopping, retrying, changing, putting away: each in every state."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.utils import timezone

from accounts_app.models import AuditEntry, Grant, User
from accounts_app.policy import Role
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.queue import messages
from assets_app.execution.queue.control import cancel_run
from assets_app.execution.queue.dispatch import dispatch
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.execution.request.retrying import retry_run, retry_runs
from assets_app.models import (
    AssetPartition,
    Gateway,
    Producer,
    ProducerVersion,
    Run,
    RunState,
)
from backfills_app.models import Backfill, BackfillPartition
from backfills_app.queries.failures import failures_of
from backfills_app.services import (
    cancel_backfill,
    change_backfill,
    clone_backfill,
    delete_backfill,
    in_bulk,
    pause_backfill,
    request_from_text,
    resume_backfill,
    retry_failed,
)
from backfills_app.services.advance import carrying
from backfills_app.services.advance.advancing import advance
from backfills_app.services.advance.expansion import expand
from slicewise_server.web.request_errors import ConflictingRequest, InvalidRequest
from tests.attempts import publish
from tests.backfills.backfill_states import Desk
from tests.backfills.driven_backfills import counts_of, following, run_all, start, state_of
from tests.created_backfills import create_backfill
from tests.factories import DAILY_2013, asset, person, together
from tests.partition_records import counts_agree_with_partitions
from tests.threads import elsewhere, wait_for_end_or_lock

ACTIONS: dict[str, Callable[..., Backfill]] = {
    "pause": pause_backfill,
    "resume": resume_backfill,
    "cancel": cancel_backfill,
    "retry": retry_failed,
    "change": lambda backfill, user: change_backfill(backfill, max_active_runs=7, user=user),
    "describe": lambda backfill, user: change_backfill(backfill, description="why", user=user),
    "delete": delete_backfill,
}


@pytest.fixture
def desk(alice: User, worker: Gateway) -> Desk:
    return Desk(alice, worker)


# State it is in: {action: state that follows, or what the refusal says}.
NOTHING_TO_RETRY = "! The backfill has no partitions to retry."
ENDED = {"resume": "! is not paused", "delete": "deleted"}
TABLE: dict[str, dict[str, str]] = {
    "creating": {
        "pause": "paused", "resume": "! is not paused: ", "cancel": "canceled",
        "retry": NOTHING_TO_RETRY, "change": "creating", "describe": "creating",
        "delete": "! is creating. Only a backfill that has ended can be deleted",
    },
    "scheduled": {
        "pause": "paused", "resume": "! is not paused: ", "cancel": "canceled",
        "retry": NOTHING_TO_RETRY, "change": "scheduled", "describe": "scheduled",
        "delete": "! is scheduled. Only",
    },
    "running": {
        "pause": "paused", "resume": "! is not paused: ", "cancel": "canceling",
        "retry": NOTHING_TO_RETRY, "change": "running", "describe": "running",
        "delete": "! is running. Only",
    },
    "running with failures": {
        "pause": "paused", "resume": "! is not paused: ", "cancel": "canceling",
        "retry": "running", "change": "running", "describe": "running",
        "delete": "! is running. Only",
    },
    "paused": {
        "pause": "! is paused already", "resume": "running", "cancel": "canceling",
        "retry": NOTHING_TO_RETRY, "change": "paused", "describe": "paused",
        "delete": "! is paused. Only",
    },
    "paused while creating": {
        "pause": "! is paused already", "resume": "creating", "cancel": "canceled",
        "retry": NOTHING_TO_RETRY, "change": "paused", "describe": "paused",
        "delete": "! is paused. Only",
    },
    "canceling": {
        "pause": "! is canceling already", "resume": "! is not paused: ",
        "cancel": "! is canceling already", "retry": "! can be retried after the",
        "change": "! is canceling already", "describe": "canceling",
        "delete": "! is canceling. Only",
    },
    "canceled": ENDED | {
        "pause": "! is canceled already", "cancel": "! is canceled already",
        "retry": NOTHING_TO_RETRY, "change": "! is canceled already", "describe": "canceled",
    },
    "succeeded": ENDED | {
        "pause": "! is succeeded already", "cancel": "! is succeeded already",
        "retry": NOTHING_TO_RETRY, "change": "! is succeeded already", "describe": "succeeded",
    },
    "partially_failed": ENDED | {
        "pause": "! is partially failed already", "cancel": "! is partially failed already",
        "retry": "running", "change": "! is partially failed already",
        "describe": "partially_failed",
    },
    "failed": ENDED | {
        "pause": "! is failed already", "cancel": "! is failed already",
        "retry": "scheduled", "change": "! is failed already", "describe": "failed",
    },
    "deleted": dict.fromkeys(ACTIONS, "! was deleted"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("state", "action"), [(state, action) for state, row in TABLE.items() for action in row]
)
def test_every_action_in_every_state_is_done_or_refused_with_a_sentence(
    desk: Desk, state: str, action: str
) -> None:
    assert set(TABLE[state]) == set(ACTIONS)
    desk.bring_to(state)
    before, trail = state_of(desk.backfill), AuditEntry.objects.count()
    expected = TABLE[state][action]
    if expected.startswith("!"):
        with pytest.raises(ConflictingRequest) as refused:
            ACTIONS[action](desk.backfill, user=desk.alice)
        assert expected[2:] in str(refused.value)
        assert desk.backfill.name in str(refused.value)
        assert (state_of(desk.backfill), AuditEntry.objects.count()) == (before, trail)
        return
    after = ACTIONS[action](desk.backfill, user=desk.alice)
    assert ("deleted" if after.deleted else after.state) == expected
    assert AuditEntry.objects.count() == trail + 1
    counts_of(desk.backfill)
    if not after.deleted and expected not in ("canceled", "canceling", "partially_failed"):
        # Whatever was done to it, it comes to its end once it may.
        if expected == "paused":
            resume_backfill(desk.backfill, user=desk.alice)
        for attempt in open_attempts():
            ending.fail(attempt, Failure(error="ValueError: no"))
        run_all(desk.worker)
        assert Backfill.objects.get().ended
        assert sum(counts_of(desk.backfill).values()) == 6
    assert counts_agree_with_partitions()


def open_attempts() -> Any:
    from assets_app.models import RunAttempt

    return list(RunAttempt.objects.filter(ended_at=None))


def test_paused_nothing_new_starts_and_what_runs_goes_on(desk: Desk) -> None:
    first, second = desk.run_some()
    paused = pause_backfill(desk.backfill, user=desk.alice)
    assert (paused.state, counts_of(paused)) == ("paused", {"active": 2, "waiting": 4})
    advance()
    assert dispatch() == 0
    publish(first)
    assert state_of(paused) == "paused"
    publish(second)
    desk.end_all()
    assert (state_of(paused), counts_of(paused)) == ("paused", {"succeeded": 2, "waiting": 4})
    resume_backfill(paused, user=desk.alice)
    desk.end_all()
    assert (state_of(paused), counts_of(paused)) == ("succeeded", {"succeeded": 6})


def test_dispatched_runs_that_have_not_begun_do_not_start_either(desk: Desk) -> None:
    advance()
    dispatch()
    sent = Run.objects.filter(state=RunState.DISPATCHED).values_list("id", flat=True)
    sent_runs = list(sent)
    pause_backfill(desk.backfill, user=desk.alice)
    assert [attempts.begin(run_id, desk.worker) for run_id in sent_runs] == [None, None]


def test_a_paused_backfill_holds_no_partition_that_somebody_else_wants(desk: Desk) -> None:
    desk.run_some(1)
    pause_backfill(desk.backfill, user=desk.alice)
    flights = desk.backfill.asset
    group = materialize(MaterializeRequest(asset=flights, selection="2013-01-06"), user=desk.alice)
    assert (group.in_flight, group.runs.count()) == ([], 1)
    with pytest.raises(ConflictingRequest, match="Another run is materializing"):
        materialize(MaterializeRequest(asset=flights, selection="2013-01-01"), user=desk.alice)


def test_it_is_written_down_while_it_is_paused(desk: Desk) -> None:
    pause_backfill(desk.backfill, user=desk.alice)
    advance()
    assert (state_of(desk.backfill), counts_of(desk.backfill)) == ("paused", {"waiting": 6})
    assert not Run.objects.exists()


def test_a_backfill_whose_last_runs_end_while_it_is_paused_has_ended(desk: Desk) -> None:
    small = start(desk.alice, "2013-02-01", "2013-02-01")
    cancel_backfill(desk.backfill, user=desk.alice)
    (attempt,) = desk.run_some()
    pause_backfill(small, user=desk.alice)
    ending.fail(attempt.row, Failure(error="ValueError: no"))
    assert state_of(small) == "failed"
    # And a retry of it is not held back by what was said before.
    retry_failed(small, user=desk.alice)
    desk.end_all()
    assert state_of(small) == "succeeded"


@pytest.mark.django_db(transaction=True)
def test_a_resumed_one_is_seen_to_at_once(
    alice: User, worker: Gateway, sent: list[tuple[str, Any, str]], monkeypatch: Any
) -> None:
    desk = Desk(alice, worker)
    monkeypatch.setattr("backfills_app.services.bookkeeping.messages.send", messages.send)
    pause_backfill(desk.backfill, user=alice)
    sent.clear()
    resume_backfill(desk.backfill, user=alice)
    assert {task for task, *_ in sent} == {"backfills_app.tasks.advance", messages.SEND_QUEUED}


def test_failed_and_canceled_partitions_are_retried_in_the_same_backfill(desk: Desk) -> None:
    desk.end_all("2013-01-02", "2013-01-05")
    history = set(desk.backfill.group.runs.values_list("id", "state"))
    ended = desk.backfill
    assert state_of(ended) == "partially_failed"
    again = retry_failed(ended, user=desk.alice)
    assert (again.state, again.run_end_date) == ("running", None)
    assert counts_of(again) == {"succeeded": 4, "waiting": 2}
    desk.end_all()
    assert (state_of(again), counts_of(again)) == ("succeeded", {"succeeded": 6})
    assert again.run_end_date is not None
    assert history < set(again.group.runs.values_list("id", "state"))
    assert again.group.runs.count() == 8


@pytest.mark.parametrize("error", [LookupError, AttributeError])
def test_a_retry_that_a_worker_cannot_carry_out_can_be_asked_for_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    desk.end_all("2013-01-02")
    with monkeypatch.context() as patched:
        patched.setattr(carrying, "retry_pending", Mock(side_effect=error("no mapping 'fiscal'")))
        backfill = retry_failed(desk.backfill, user=desk.alice)
        assert backfill.state == "failed"
        assert "no mapping 'fiscal'" in backfill.error
        assert not backfill.pending.exists()
    backfill = retry_failed(desk.backfill, user=desk.alice)
    assert (backfill.state, backfill.error) == ("running", "")
    desk.end_all()
    assert state_of(desk.backfill) == "succeeded"


def test_a_canceled_backfill_goes_on_where_it_was_stopped(desk: Desk) -> None:
    first, second = desk.run_some()
    publish(first)
    cancel_backfill(desk.backfill, user=desk.alice)
    ending.cancel(second.row)
    assert counts_of(desk.backfill) == {"succeeded": 1, "canceled": 5}
    with pytest.raises(ConflictingRequest, match="the 5 canceled partitions, include canceled"):
        retry_failed(desk.backfill, user=desk.alice)
    with pytest.raises(ConflictingRequest, match="retry the backfill with canceled partitions"):
        resume_backfill(desk.backfill, user=desk.alice)
    retry_failed(desk.backfill, canceled=True, user=desk.alice)
    desk.end_all()
    assert (state_of(desk.backfill), counts_of(desk.backfill)) == ("succeeded", {"succeeded": 6})


def test_a_backfill_canceled_while_it_was_created_names_the_clone_as_the_way_to_the_rest(
    desk: Desk,
) -> None:
    backfill = desk.backfill
    cancel_backfill(backfill, user=desk.alice)
    assert (state_of(backfill), counts_of(backfill)) == ("canceled", {})
    with pytest.raises(ConflictingRequest, match="has no partitions to retry"):
        retry_failed(backfill, canceled=True, user=desk.alice)
    way = "For partitions that were not created before the cancellation, clone the backfill"
    with pytest.raises(ConflictingRequest, match=way):
        resume_backfill(backfill, user=desk.alice)
    clone = clone_backfill(backfill, {}, user=desk.alice)
    desk.end_all()
    assert (state_of(clone), counts_of(clone)) == ("succeeded", {"succeeded": 6})


def test_a_retry_of_what_failed_leaves_what_was_canceled(desk: Desk) -> None:
    first, second = desk.run_some()
    ending.fail(first.row, Failure(error="ValueError: no"))
    cancel_backfill(desk.backfill, user=desk.alice)
    ending.cancel(second.row)
    assert counts_of(desk.backfill) == {"failed": 1, "canceled": 5}
    (failure,) = failures_of(desk.backfill)
    assert failure.number == 1
    retry_failed(desk.backfill, user=desk.alice)
    desk.end_all()
    assert counts_of(desk.backfill) == {"succeeded": 1, "canceled": 5}
    # The run that failed is history: its partition was made.
    assert failures_of(desk.backfill) == []


def test_a_retry_skips_partitions_materialized_by_other_runs(desk: Desk, alice: User) -> None:
    desk.end_all("2013-01-02")
    materialize(MaterializeRequest(asset=desk.backfill.asset, selection="2013-01-02"), user=alice)
    from tests.execution.conftest import make_gateway

    make_gateway("scheduled")
    desk.end_all()
    retry_failed(desk.backfill, user=alice)
    desk.end_all()
    assert counts_of(desk.backfill) == {"succeeded": 5, "skipped": 1}


@pytest.mark.parametrize("existing", ["missing", "missing_and_failed", "all"])
def test_failed_partitions_are_retried_under_every_policy_for_existing_partitions(
    desk: Desk, alice: User, existing: str
) -> None:
    backfill = start(alice, "2013-03-01", "2013-03-03", existing=existing)
    desk.end_all("2013-03-02")
    retry_failed(backfill, user=alice)
    desk.end_all()
    assert (state_of(backfill), counts_of(backfill)) == ("succeeded", {"succeeded": 3})


def test_a_retry_takes_the_code_that_was_frozen_or_the_newest(desk: Desk, alice: User) -> None:
    desk.end_all("2013-01-02")
    producer = desk.backfill.asset.producer
    assert producer is not None
    frozen = producer.current_version
    assert frozen is not None
    newest = ProducerVersion.objects.create(
        producer=producer, bundle_version=frozen.bundle_version, digest="f" * 64,
        definition=frozen.definition, source="def raw_flights(): 1", file="flights.py",
    )  # fmt: skip
    producer.current_version = newest
    producer.save()
    retry_failed(desk.backfill, user=alice)
    desk.end_all("2013-01-02")
    assert desk.backfill.group.runs.latest("id").producer_version == frozen
    retry_failed(desk.backfill, code="newest", user=alice)
    desk.end_all()
    assert desk.backfill.group.runs.latest("id").producer_version == newest
    entry = AuditEntry.objects.filter(action="retry failed").latest("id")
    assert entry.detail["versions"] == {"raw_flights": "f" * 12}
    with pytest.raises(InvalidRequest, match="none of same, newest"):
        retry_failed(desk.backfill, code="older", user=alice)


def test_a_single_run_is_retried_and_the_backfill_goes_with_it(desk: Desk, alice: User) -> None:
    desk.end_all("2013-01-03")
    failed = desk.backfill.group.runs.get(state=RunState.FAILED)
    retry_run(failed, user=alice)
    assert (state_of(desk.backfill), counts_of(desk.backfill)) == (
        "running", {"succeeded": 5, "active": 1},
    )  # fmt: skip
    assert desk.backfill.run_end_date is None
    desk.end_all()
    assert (state_of(desk.backfill), counts_of(desk.backfill)) == ("succeeded", {"succeeded": 6})
    assert desk.backfill.group.runs.count() == 6


def test_single_runs_retried_after_a_retry_that_failed_let_the_backfill_succeed(
    desk: Desk, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.end_all("2013-01-03")
    with monkeypatch.context() as patched:
        patched.setattr(carrying, "retry_pending", Mock(side_effect=ValueError("no plug-in")))
        retry_failed(desk.backfill, user=alice)
    assert state_of(desk.backfill) == "failed"
    assert desk.backfill.error == "It could not be retried: ValueError: no plug-in"
    retry_run(desk.backfill.group.runs.get(state=RunState.FAILED), user=alice)
    assert state_of(desk.backfill) == "running"
    assert desk.backfill.error == ""
    desk.end_all()
    assert state_of(desk.backfill) == "succeeded"


def test_a_retry_of_runs_is_in_the_audit_trail_of_the_backfill(desk: Desk, alice: User) -> None:
    desk.end_all("2013-01-03", "2013-01-04")
    failed = desk.backfill.group.runs.filter(state=RunState.FAILED).order_by("id")
    retry_runs([run.pk for run in failed], user=alice)
    trail = AuditEntry.objects.filter(subject_type="backfill", subject=desk.backfill.name)
    entry = trail.latest("id")
    assert (entry.actor_name, entry.action) == (alice.username, "retry runs")
    assert entry.detail == {"runs": 2, "partitions": 2}


def test_a_run_that_was_retried_by_hand_is_history_of_its_own_in_a_paused_backfill(
    desk: Desk, alice: User
) -> None:
    first, _ = desk.run_some()
    ending.fail(first.row, Failure(error="ValueError: no"))
    retry_run(first.run, user=alice)
    advance()
    dispatch()
    pause_backfill(desk.backfill, user=alice)
    first.run.refresh_from_db()
    assert first.run.state == RunState.QUEUED
    assert dispatch() == 0
    assert counts_of(desk.backfill) == {"active": 2, "waiting": 4}


@pytest.mark.parametrize(
    ("then", "message"),
    [
        (
            lambda backfill, user: retry_failed(backfill, user=user),
            r"is superseded: .* Another run of that backfill covers the partitions\.",
        ),
        (
            lambda backfill, user: (
                retry_failed(backfill, user=user),
                cancel_backfill(backfill, user=user),
            ),
            r"is superseded: .* Retry that backfill instead, or re-run this run\.",
        ),
        (lambda backfill, user: delete_backfill(backfill, user=user), "which was deleted"),
    ],
)
def test_a_run_whose_partitions_the_backfill_has_put_elsewhere_is_not_retried(
    desk: Desk, alice: User, then: Callable[..., Any], message: str
) -> None:
    desk.end_all("2013-01-03")
    failed = desk.backfill.group.runs.get(state=RunState.FAILED)
    then(desk.backfill, alice)
    with pytest.raises(ConflictingRequest, match=message):
        retry_run(failed, user=alice)
    failed.refresh_from_db()
    assert failed.state == RunState.FAILED


def test_a_run_of_a_backfill_that_is_being_canceled_is_not_retried(desk: Desk, alice: User) -> None:
    first, _ = desk.run_some()
    ending.fail(first.row, Failure(error="ValueError: no"))
    cancel_backfill(desk.backfill, user=alice)
    with pytest.raises(ConflictingRequest, match="which is being canceled"):
        retry_run(first.run, user=alice)


def test_a_run_that_had_published_a_part_takes_all_of_it_again(desk: Desk, alice: User) -> None:
    ranged = start(alice, "2013-05-01", "2013-05-03", strategy="range")
    cancel_backfill(desk.backfill, user=alice)
    desk.end_all("2013-05-02")
    run = ranged.group.runs.get()
    wanted = BackfillPartition.objects.filter(run=run).order_by("position")
    # As after a failure in the middle of publishing.
    wanted.filter(key="2013-05-01").update(state="succeeded")
    scope = ranged.assets.get()
    scope.failed, scope.succeeded = 2, 1
    scope.save()
    retry_run(run, user=alice)
    assert counts_of(ranged) == {"active": 3}
    desk.end_all()
    assert counts_of(ranged) == {"succeeded": 3}


def test_a_backfill_is_put_away_and_its_record_stays(desk: Desk, alice: User) -> None:
    desk.end_all()
    deleted = delete_backfill(desk.backfill, user=alice)
    assert deleted.deleted
    assert deleted.delete_date is not None
    assert deleted.delete_date <= timezone.now()
    assert not Backfill.objects.listed().exists()
    assert counts_of(deleted) == {"succeeded": 6}
    assert deleted.group.runs.count() == 6


def test_lowered_below_what_runs_nothing_starts_until_fewer_run(desk: Desk, alice: User) -> None:
    change_backfill(desk.backfill, max_active_runs=4, user=alice)
    running = desk.run_some(3)
    assert (len(running), Run.objects.filter(state=RunState.DISPATCHED).count()) == (3, 1)
    change_backfill(desk.backfill, max_active_runs=2, user=alice)
    # What had been sent and not begun was taken back as well.
    assert Run.objects.filter(state=RunState.DISPATCHED).count() == 0
    for ended, started in ((0, 0), (1, 0), (2, 1)):
        if ended:
            publish(running[ended - 1])
        advance()
        assert dispatch() == started
    assert state_of(desk.backfill) == "running"


def test_raised_more_start_at_once(desk: Desk, alice: User) -> None:
    desk.run_some()
    assert dispatch() == 0
    change_backfill(desk.backfill, max_active_runs=5, user=alice)
    advance()
    assert dispatch() == 3


def test_a_higher_priority_goes_first_from_now_on(desk: Desk, alice: User) -> None:
    Gateway.objects.update(slots=1)
    urgent = start(alice, "2013-06-01", "2013-06-30", max_active_runs=2)
    advance()
    change_backfill(urgent, priority=5, user=alice)
    assert dispatch() == 2
    sent = Run.objects.filter(state=RunState.DISPATCHED)
    assert set(sent.values_list("group", flat=True)) == {urgent.group_id}


def test_the_order_is_changed_for_all_that_has_not_begun(desk: Desk, alice: User) -> None:
    (first,) = desk.run_some(1)
    change_backfill(desk.backfill, order="newest", user=alice)
    publish(first)
    selections = [attempt.run.selection for attempt in desk.run_some()]
    assert (first.run.selection, selections) == ("2013-01-01", ["2013-01-06", "2013-01-05"])


def test_the_order_of_a_selection_is_kept_only_where_it_was_asked_for(
    desk: Desk, alice: User
) -> None:
    advance()
    with pytest.raises(ConflictingRequest, match="has no listed order"):
        change_backfill(desk.backfill, order="listed", user=alice)


@pytest.mark.parametrize("written", [False, True])
def test_a_listed_one_is_put_in_the_order_of_time(
    alice: User, worker: Gateway, written: bool
) -> None:
    asset("raw_flights", DAILY_2013)
    listed = create_backfill(
        request_from_text("raw_flights", selection="2013-01-05; 2013-01-01; 2013-01-03",
                          order="listed"),
        user=alice,
    )  # fmt: skip
    if written:
        advance()
    change_backfill(listed, order="oldest", user=alice)
    run_all(worker)
    runs = Run.objects.filter(group=listed.group_id).order_by("id")
    assert list(runs.values_list("selection", flat=True)) == [
        "2013-01-01", "2013-01-03", "2013-01-05",
    ]  # fmt: skip
    assert state_of(listed) == "succeeded"


def test_of_more_than_two_of_one_name_each_has_its_own(alice: User, settings: Any) -> None:
    settings.BACKFILL_NAME_PATTERN = "again_{asset}"
    asset("raw_flights", DAILY_2013)
    backfills = [start(alice) for _ in range(25)]
    assert len({backfill.name for backfill in backfills}) == len(backfills)
    assert all(backfill.name.startswith("again_raw_flights") for backfill in backfills)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({}, ""),
        ({"max_active_runs": 0}, "max_active_runs"),
        ({"max_active_runs": 1001}, "max_active_runs"),
        ({"priority": 1001}, "priority"),
        ({"priority": -1001}, "priority"),
        ({"order": "random"}, "order"),
        ({"description": "x" * 1001}, "description"),
        ({"description": "a\0b"}, "description"),
    ],
)
def test_a_wrong_change_is_refused_by_field_and_changes_nothing(
    desk: Desk, alice: User, changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        change_backfill(desk.backfill, user=alice, **changes)
    assert set(refused.value.errors) == {field}
    assert not AuditEntry.objects.filter(action="change").exists()


def test_a_change_is_on_record_with_what_was_before(desk: Desk, alice: User) -> None:
    change_backfill(desk.backfill, max_active_runs=2, priority=3, user=alice)
    entry = AuditEntry.objects.get(action="change")
    assert entry.detail == {"priority": {"from": 0, "to": 3}}
    desk.backfill.group.refresh_from_db()
    assert desk.backfill.group.priority == 3


def test_nothing_starts_before_the_time_that_was_asked_for(desk: Desk, alice: User) -> None:
    cancel_backfill(desk.backfill, user=alice)
    later = start(alice, start_at=timezone.now() + timedelta(hours=1))
    advance()
    advance()
    assert (state_of(later), counts_of(later)) == ("scheduled", {"waiting": 31})
    assert pause_backfill(later, user=alice).state == "paused"
    assert resume_backfill(later, user=alice).state == "scheduled"
    advance()
    assert not later.group.runs.exists()
    Backfill.objects.filter(pk=later.pk).update(scheduled_date=timezone.now())
    advance()
    assert state_of(later) == "running"


def test_in_bulk_each_is_done_or_told_why_not(desk: Desk, alice: User) -> None:
    finished = start(alice, "2013-02-01", "2013-02-02")
    result = in_bulk("pause", [desk.backfill.pk, finished.pk, 999_999], user=alice)
    assert result.done == [desk.backfill.pk, finished.pk]
    assert result.refused == {999_999: "There is no backfill 999999."}
    again = in_bulk("pause", [desk.backfill.pk], user=alice)
    assert (again.done, list(again.refused)) == ([], [desk.backfill.pk])
    assert "is paused already" in again.refused[desk.backfill.pk]
    for action, ids, field in (("fly", [1], "action"), ("pause", [], "backfills"),
                               ("pause", range(1, 1000), "backfills")):  # fmt: skip
        with pytest.raises(InvalidRequest) as refused:
            in_bulk(action, list(ids), user=alice)
        assert set(refused.value.errors) == {field}


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(
    ("role", "granted", "allowed"),
    [
        (None, None, False),
        (Role.VIEWER, None, False),
        (Role.VIEWER, "weather", False),
        (Role.VIEWER, "raw_flights", True),
        (Role.OPERATOR, None, True),
        (Role.EDITOR, None, True),
        (Role.ADMIN, None, True),
    ],
)
def test_a_backfill_is_controlled_by_operators_and_by_whom_it_was_granted(
    desk: Desk, action: str, role: Role | None, granted: str | None, allowed: bool
) -> None:
    state = next(state for state, row in TABLE.items() if not row[action].startswith("!"))
    desk.bring_to(state)
    user = person("somebody", role)
    if granted:
        Grant.objects.create(person=user, asset=granted)
    if allowed:
        ACTIONS[action](desk.backfill, user=user)
        return
    with pytest.raises(PermissionDenied, match=r"somebody may not (backfill|cancel) raw_flights: "):
        ACTIONS[action](desk.backfill, user=user)
    assert state_of(desk.backfill) == desk.backfill.state
    if action in ("pause", "resume", "cancel", "retry", "delete"):
        with pytest.raises(PermissionDenied):
            in_bulk(action, [desk.backfill.pk], user=user)


def test_a_grant_is_enough_to_create_one_as_well(desk: Desk) -> None:
    vera = person("vera", Role.VIEWER)
    Grant.objects.create(person=vera, asset="raw_flights")
    asset("weather", DAILY_2013)
    assert start(vera).submitted_by == vera
    with pytest.raises(PermissionDenied, match="vera may not backfill weather"):
        create_backfill(request_from_text("weather", "2013-01-01", "2013-01-02"), user=vera)


def test_a_grant_must_cover_all_outlets_of_the_function(alice: User) -> None:
    together("both", ["one", "two"], DAILY_2013)
    vera = person("vera", Role.VIEWER)
    Grant.objects.create(person=vera, asset="one")
    request = request_from_text("one", "2013-01-01", "2013-01-02")
    with pytest.raises(PermissionDenied, match="vera may not backfill two"):
        create_backfill(request, user=vera)
    of_alice = create_backfill(request, user=alice)
    for act in (pause_backfill, cancel_backfill):
        with pytest.raises(PermissionDenied, match="two"):
            act(of_alice, user=vera)
    Grant.objects.create(person=vera, asset="two")
    assert cancel_backfill(of_alice, user=vera).state == "canceled"


def test_a_grant_must_cover_all_outlets_of_the_newest_code_for_a_retry_with_it(
    alice: User, worker: Gateway
) -> None:
    one, _ = together("both", ["one", "two"], DAILY_2013)
    vera = person("vera", Role.VIEWER)
    Grant.objects.create(person=vera, asset="one")
    producer = one.producer
    assert producer is not None
    newest = producer.current_version
    assert newest is not None
    outlets = newest.definition["outlets"]
    newest.definition["outlets"] = outlets[:1]
    newest.save()
    backfill = create_backfill(request_from_text("one", "2013-01-01", "2013-01-02"), user=vera)
    run_all(worker, failing=("2013-01-01",))
    newest.pk, newest.digest = None, "f" * 64
    newest.definition["outlets"] = outlets
    newest.save()
    producer.current_version = newest
    producer.save()
    with pytest.raises(PermissionDenied, match="vera may not backfill two"):
        retry_failed(backfill, code="newest", user=vera)
    assert state_of(backfill) == "partially_failed"
    assert retry_failed(backfill, user=vera).state == "running"
    run_all(worker, failing=("2013-01-01",))
    Grant.objects.create(person=vera, asset="two")
    assert retry_failed(backfill, code="newest", user=vera).state == "running"
    run_all(worker)
    assert state_of(backfill) == "succeeded"
    assert Run.objects.latest("id").producer_version == newest


def test_a_clone_leaves_the_same_params_to_each_asset(alice: User) -> None:
    asset("raw", DAILY_2013, params={"threshold": 10, "year": 2013})
    following("delays", DAILY_2013, of={"raw": None}, params={"threshold": 5})
    request = request_from_text(
        "raw", "2013-01-01", "2013-01-02", downstream="all", params={"year": 2014}
    )
    clone = clone_backfill(create_backfill(request, user=alice), {}, user=alice)
    assert dict(clone.assets.values_list("asset__name", "params")) == {
        "raw": {"threshold": 10, "year": 2014}, "delays": {"threshold": 5},
    }  # fmt: skip


@pytest.mark.parametrize("is_newest_first", [True, False])
def test_of_two_retries_at_once_each_takes_its_partitions_with_its_code(
    alice: User, worker: Gateway, monkeypatch: pytest.MonkeyPatch, *, is_newest_first: bool
) -> None:
    raw, weather = asset("raw", DAILY_2013), asset("weather", DAILY_2013)
    request = request_from_text(
        assets=["raw", "weather"], start="2013-01-01", end="2013-01-01", existing="all"
    )
    backfill = create_backfill(request, user=alice)
    advance()
    cancel_run(Run.objects.get(asset=weather), user=alice)
    run_all(worker, failing=("2013-01-01",))
    assert state_of(backfill) == "failed"
    for of in (raw, weather):
        newest = of.producer and of.producer.current_version
        assert newest
        newest.pk, newest.digest = None, "f" * 64
        newest.save()
        Producer.objects.filter(pk=newest.producer_id).update(current_version=newest)
    requests: list[dict[str, Any]] = [{"code": "newest"}, {"canceled": True}]
    with monkeypatch.context() as patched:
        patched.setattr(carrying, "MOST_AT_ONCE", -1)
        for how in requests if is_newest_first else reversed(requests):
            retry_failed(Backfill.objects.get(pk=backfill.pk), user=alice, **how)
    assert backfill.pending.count() == 2
    run_all(worker)
    assert state_of(backfill) == "succeeded"
    versions = backfill.assets.values_list("asset__name", "producer_version__digest")
    frozen = dict(versions)
    assert frozen["raw"] == "f" * 64 != frozen["weather"]


@pytest.mark.parametrize("strategy", [None, 2])
def test_a_retry_with_the_newest_code_takes_its_strategy_unless_the_request_named_one(
    alice: User, worker: Gateway, strategy: int | None
) -> None:
    raw = asset("raw", DAILY_2013)
    following("delays", DAILY_2013, of={"raw": None})
    request = request_from_text(
        "raw", "2013-01-01", "2013-01-04", downstream="all", strategy=strategy
    )
    backfill = create_backfill(request, user=alice)
    run_all(worker, failing=("2013-01-01", "2013-01-02", "2013-01-03", "2013-01-04"))
    newest = raw.producer and raw.producer.current_version
    assert newest
    newest.pk, newest.digest = None, "f" * 64
    newest.definition["strategy"] = "range"
    newest.save()
    Producer.objects.filter(name="raw").update(current_version=newest)
    retry_failed(Backfill.objects.get(pk=backfill.pk), code="newest", user=alice)
    run_all(worker)
    assert state_of(backfill) == "succeeded"
    newest_runs = backfill.group.runs.filter(producer_version=newest)
    clone = clone_backfill(backfill, {"existing": "all"}, user=alice)
    assert set(newest_runs.values_list("partition_count", flat=True)) == {strategy or 4}
    assert dict(clone.assets.values_list("asset__name", "strategy")) == {
        "raw": strategy or "range", "delays": strategy or "partition",
    }  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_a_request_that_waits_for_another_request_sees_the_change(desk: Desk, alice: User) -> None:
    """The waiting pause, or the change of the priority, comes after the change of the other."""
    pause_backfill(desk.backfill, user=alice)

    def pause() -> None:
        pause_backfill(desk.backfill, user=alice)

    with transaction.atomic():
        resume_backfill(Backfill.objects.get(pk=desk.backfill.pk), user=alice)
        thread = elsewhere(pause)
        wait_for_end_or_lock(thread)
    thread.join()
    assert state_of(desk.backfill) == "paused"
    assert desk.backfill.group.paused

    def reset() -> None:
        change_backfill(desk.backfill, priority=0, user=alice)

    with transaction.atomic():
        change_backfill(Backfill.objects.get(pk=desk.backfill.pk), priority=5, user=alice)
        thread = elsewhere(reset)
        wait_for_end_or_lock(thread)
    thread.join()
    desk.backfill.refresh_from_db()
    assert desk.backfill.group.priority == 0


def test_statements_after_a_request_within_a_transaction_wait_without_its_limit(
    desk: Desk, alice: User
) -> None:
    """Under an idempotency key, an action on several backfills is one transaction."""
    desk.run_some(1)
    with transaction.atomic():
        in_bulk("pause", [desk.backfill.pk], user=alice)
        with connection.cursor() as cursor:
            cursor.execute("SHOW lock_timeout")
            assert cursor.fetchone()[0] == "0"
    assert not desk.backfill.pending.exists()


def test_no_partition_stays_claimed_by_a_run_that_is_gone(desk: Desk, alice: User) -> None:
    for _ in range(3):
        desk.run_some(0)
        pause_backfill(desk.backfill, user=alice)
        resume_backfill(desk.backfill, user=alice)
    assert not AssetPartition.objects.filter(held_by__isnull=False).exists()
    assert not Run.objects.exists()
    expand(desk.backfill.pk)
    desk.end_all()
    assert state_of(desk.backfill) == "succeeded"


def test_a_later_backfill_materializes_partitions_of_a_paused_backfill(
    desk: Desk, alice: User
) -> None:
    (first,) = desk.run_some(1)
    second_backfill = start(alice, end="2013-01-06")
    advance()
    advance()
    assert counts_of(second_backfill)["skipped"] == 6
    assert state_of(second_backfill) == "succeeded"
    third = start(alice, end="2013-01-07", max_active_runs=1)
    advance()
    advance()
    assert counts_of(third) == {"skipped": 6, "active": 1}
    pause_backfill(desk.backfill, user=alice)
    # The one that goes on has what is not at work; the one that has ended stays as it was.
    assert counts_of(third) == {"skipped": 1, "waiting": 5, "active": 1}
    assert (state_of(second_backfill), counts_of(second_backfill)) == ("succeeded", {"skipped": 6})
    publish(first)
    desk.end_all()
    assert counts_of(third) == {"skipped": 1, "succeeded": 6}
    resume_backfill(desk.backfill, user=alice)
    desk.end_all()
    assert (state_of(desk.backfill), counts_of(desk.backfill)) == (
        "succeeded", {"succeeded": 1, "skipped": 5},
    )  # fmt: skip

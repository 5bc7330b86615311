"""Backfills under any sequence of acts, while runs end well or badly: each state is true, and each
accepted backfill ends.
"""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from accounts_app.models import User
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.queue.dispatch import dispatch
from assets_app.execution.request.retrying import RETRYABLE_STATES, retry_run
from assets_app.models import (
    ACTIVE_STATES,
    TERMINAL_STATES,
    AssetPartition,
    Gateway,
    Run,
    RunAttempt,
    RunState,
)
from backfills_app.models import Backfill, BackfillPartition
from backfills_app.services import (
    cancel_backfill,
    change_backfill,
    delete_backfill,
    pause_backfill,
    resume_backfill,
    retry_failed,
)
from backfills_app.services.advance.advancing import advance
from slicewise_server.web.request_errors import ConflictingRequest
from tests.attempts import staged
from tests.backfills.driven_backfills import ask, drive, following
from tests.execution.conftest import make_gateway
from tests.factories import DAILY_2013, asset, outlet_of
from tests.partition_records import counts_agree_with_partitions

pytestmark = pytest.mark.django_db

WHICH = st.integers(0, 3)
ACTIONS: dict[str, Callable[..., Any]] = {
    "pause": pause_backfill,
    "resume": resume_backfill,
    "cancel": cancel_backfill,
    "retry": retry_failed,
    "delete": delete_backfill,
}


def refusal(act: Callable[[], object]) -> str:
    """Return the reason of a refusal; an empty text without a refusal."""
    try:
        act()
    except ConflictingRequest as refused:
        return str(refused)
    return ""


class Backfills(RuleBasedStateMachine):
    """Two backfills that share partitions, one with downstream assets; people and a worker."""

    def __init__(self) -> None:
        super().__init__()
        self.example = transaction.atomic()
        self.example.__enter__()
        self.ada = User.objects.create_superuser("ada")
        self.worker = make_gateway("backfill", slots=3)
        asset("raw_flights", DAILY_2013)
        following("delays", DAILY_2013, of={"raw_flights": None})

    @initialize(strategy=st.sampled_from(["partition", 2, "range"]), most=st.integers(1, 3))
    def two_are_asked_for(self, strategy: str | int, most: int) -> None:
        ask(
            self.ada, "raw_flights", start="2013-01-01", end="2013-01-04", downstream="all",
            strategy=strategy, max_active_runs=most,
        )  # fmt: skip
        ask(self.ada, "raw_flights", start="2013-01-03", end="2013-01-06", existing="all")

    def teardown(self) -> None:
        try:
            self._all_comes_to_its_end()
        finally:
            transaction.set_rollback(True)
            self.example.__exit__(None, None, None)

    @rule()
    def the_control_worker_looks(self) -> None:
        advance()

    @rule()
    def what_there_is_room_for_is_sent(self) -> None:
        Gateway.objects.update(last_seen=timezone.now())
        before = self._active_by_group()
        dispatch()
        for group, number in self._active_by_group().items():
            backfill = Backfill.objects.get(group=group)
            assert number <= max(backfill.max_active_runs, before.get(group, 0))
            assert number == before.get(group, 0) or not backfill.group.paused

    @precondition(lambda self: Run.objects.filter(state=RunState.DISPATCHED).exists())
    @rule(index=WHICH)
    def a_run_begins(self, index: int) -> None:
        sent = list(Run.objects.filter(state=RunState.DISPATCHED).order_by("id"))
        assert attempts.begin(sent[index % len(sent)].pk, self.worker)

    @precondition(lambda self: RunAttempt.objects.filter(ended_at=None).exists())
    @rule(index=WHICH, well=st.booleans())
    def a_run_ends(self, index: int, well: bool) -> None:
        under_way = list(RunAttempt.objects.filter(ended_at=None).order_by("id"))
        self._end(under_way[index % len(under_way)], well)

    @rule(index=WHICH, action=st.sampled_from(sorted(ACTIONS)))
    def somebody_acts(self, index: int, action: str) -> None:
        backfill = self._backfill(index)
        message = refusal(lambda: ACTIONS[action](backfill, user=self.ada))
        assert not message or backfill.name in message

    @rule(index=WHICH, most=st.integers(1, 4), order=st.sampled_from(["oldest", "newest"]))
    def somebody_changes_one(self, index: int, most: int, order: str) -> None:
        backfill = self._backfill(index)
        terms: dict[str, Any] = {"max_active_runs": most, "order": order}
        message = refusal(lambda: change_backfill(backfill, user=self.ada, **terms))
        assert not message or backfill.name in message

    @precondition(lambda self: Run.objects.filter(state__in=RETRYABLE_STATES).exists())
    @rule(index=WHICH)
    def somebody_retries_a_run(self, index: int) -> None:
        ended = list(Run.objects.filter(state__in=RETRYABLE_STATES).order_by("id"))
        run = ended[index % len(ended)]
        message = refusal(lambda: retry_run(run, user=self.ada))
        assert not message or str(run.pk) in message

    @invariant()
    def counts_are_what_counting_gives(self) -> None:
        for backfill in self._all():
            for scope in backfill.assets.all():
                states = list(scope.partitions.values_list("state", flat=True))
                for state in BackfillPartition.State.values:
                    assert getattr(scope, state) == states.count(state), (scope, state)
        assert counts_agree_with_partitions()

    @invariant()
    def no_state_lies(self) -> None:
        for backfill in self._all():
            scopes = list(backfill.assets.all())
            going_on = any(
                scope.waiting or scope.active or scope.expanded < scope.total for scope in scopes
            )
            assert backfill.ended is not going_on
            unfinished = backfill.group.runs.exclude(state__in=TERMINAL_STATES)
            assert not (backfill.ended and unfinished.exists())
            if backfill.state == "canceling":
                assert not any(scope.waiting for scope in scopes)
            if backfill.deleted:
                assert backfill.ended
            assert (backfill.state == "paused") is (
                backfill.group.paused and not backfill.ended and backfill.state != "canceling"
            )
            assert (backfill.run_end_date is not None) is backfill.ended
            assert backfill.max_active_runs == backfill.group.max_active_runs

    @invariant()
    def what_is_held_is_made_by_one_run_that_goes_on(self) -> None:
        held_partitions = AssetPartition.objects.filter(held_by__isnull=False)
        assert not held_partitions.filter(held_by__state__in=TERMINAL_STATES).exists()
        active = BackfillPartition.objects.filter(state="active").select_related("partition")
        for wanted in active:
            assert wanted.partition is not None
            assert wanted.partition.held_by_id == wanted.run_id

    def _all(self) -> list[Backfill]:
        rows = Backfill.objects.select_related("group").prefetch_related("assets")
        return list(rows.order_by("id"))

    def _backfill(self, index: int) -> Backfill:
        rows = self._all()
        return rows[index % len(rows)]

    def _active_by_group(self) -> dict[int, int]:
        active = Run.objects.filter(state__in=ACTIVE_STATES).values_list("group", flat=True)
        return {group: list(active).count(group) for group in set(active)}

    def _end(self, attempt: RunAttempt, well: bool) -> None:
        run = Run.objects.get(pk=attempt.run_id)
        if run.state == RunState.CANCELING:
            assert ending.cancel(attempt)
        elif not well:
            ending.fail(attempt, Failure(error="ValueError: no"))
        else:
            keys = list(
                run.partitions.order_by("position").values_list("partition__key", flat=True)
            )
            at_work = attempts.Attempt(run=run, row=attempt, keys=keys, unstopped=[])
            assert attempts.intend_to_publish(attempt, [outlet_of(at_work, staged(at_work))])
            assert ending.succeed(attempt)

    def _all_comes_to_its_end(self) -> None:
        for attempt in RunAttempt.objects.filter(ended_at=None).order_by("id"):
            self._end(attempt, well=True)
        for backfill in self._all():
            if backfill.state == "paused":
                resume_backfill(backfill, user=self.ada)
        drive(self.worker)
        assert all(backfill.ended for backfill in self._all())
        assert not AssetPartition.objects.filter(held_by__isnull=False).exists()


def test_no_sequence_of_actions_and_ends_makes_a_state_lie() -> None:
    run_state_machine_as_test(
        Backfills,
        settings=settings(
            max_examples=12,
            stateful_step_count=20,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

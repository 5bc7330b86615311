"""The table of states is one table: code and database allow the same transitions, and no others."""

from contextlib import nullcontext
from itertools import product

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts_app.models import User
from assets_app.execution.queue.transitions import UnknownTransition, move, move_all
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import TERMINAL_STATES, TRANSITIONS, Run, RunState
from tests.factories import asset


@pytest.fixture
def run(alice: User) -> Run:
    return materialize(MaterializeRequest(asset=asset("carriers")), user=alice).runs.get()


def put_in(run: Run, state: RunState) -> None:
    """Bring the run into a state by a new row, since the trigger watches changes only."""
    ended = timezone.now() if state in TERMINAL_STATES else None
    Run.objects.filter(pk=run.pk).delete()
    run.state, run.ended_at = state, ended
    run.save(force_insert=True)


@pytest.mark.parametrize(("old", "new"), list(product(RunState, RunState)))
def test_the_database_allows_what_the_table_allows(run: Run, old: RunState, new: RunState) -> None:
    run.partitions.all().delete()
    run.held_partitions.update(held_by=None)
    put_in(run, old)
    ended = timezone.now() if new in TERMINAL_STATES else None
    allowed = old == new or new in TRANSITIONS[old]
    refusal = pytest.raises(IntegrityError, match="no transition")
    with nullcontext() if allowed else refusal, transaction.atomic():
        Run.objects.filter(pk=run.pk).update(state=new, ended_at=ended)


def test_a_move_that_the_table_lacks_is_a_mistake_of_the_caller(run: Run) -> None:
    with pytest.raises(UnknownTransition, match="from succeeded to running"):
        move(run.pk, RunState.SUCCEEDED, RunState.RUNNING)


def test_only_one_of_two_that_want_to_move_a_run_moves_it(run: Run) -> None:
    assert move(run.pk, RunState.QUEUED, RunState.DISPATCHED)
    assert not move(run.pk, RunState.QUEUED, RunState.DISPATCHED)


def test_of_many_runs_those_in_the_state_are_moved(run: Run) -> None:
    assert move_all([run.pk, run.pk + 1], RunState.QUEUED, RunState.DISPATCHED) == [run.pk]
    assert move_all([run.pk], RunState.QUEUED, RunState.DISPATCHED) == []


def test_a_run_that_has_ended_says_when(run: Run) -> None:
    with pytest.raises(IntegrityError, match="run_ended_when_terminal"):
        move(run.pk, RunState.QUEUED, RunState.CANCELED)

"""A run that loses its worker again and again is executed beside fewer runs, and then alone."""

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.conf import settings as django_settings
from django.utils import timezone

from accounts_app.models import User
from assets_app.execution.attempt import attempts
from assets_app.execution.gateway import supervision
from assets_app.execution.gateway.concurrent_runs import ConcurrentRuns, JoinResult
from assets_app.execution.gateway.recovery import recover
from assets_app.execution.queue.dispatch import dispatch, resend_dispatched
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.execution.request.retrying import retry_run
from assets_app.models import Asset, Gateway, Run, RunAttempt, RunState
from tests.attempts import begun
from tests.execution.conftest import lose_the_worker
from tests.factories import DAILY_2013, asset

JOINED, WAITS, REFUSED, KNOWN = JoinResult


def elsewhere(act: Callable[[], Any]) -> Any:
    """Call the function in another thread, and return its result."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(act()))
    thread.start()
    thread.join(120)
    return results[0]


def test_who_was_lost_once_has_as_many_neighbours_as_there_are_slots() -> None:
    concurrent_runs = ConcurrentRuns(4, suspect_after=2)
    assert [concurrent_runs.join(run, 1) for run in range(4)] == [JOINED] * 4
    assert concurrent_runs.closed_slots == 0
    assert not concurrent_runs.is_alone(0)
    concurrent_runs = ConcurrentRuns(1, suspect_after=2)
    assert concurrent_runs.join(1, 0) == JOINED
    assert concurrent_runs.is_alone(1)


def test_who_was_lost_twice_waits_until_it_is_alone_and_then_keeps_others_out() -> None:
    concurrent_runs = ConcurrentRuns(4, suspect_after=2)
    assert [concurrent_runs.join(run, 0) for run in (1, 2)] == [JOINED] * 2
    assert concurrent_runs.join(3, 2) == WAITS
    assert concurrent_runs.closed_slots == 3
    assert concurrent_runs.join(4, 0) == REFUSED, "it would wait for ever"
    assert concurrent_runs.join(5, 7) == REFUSED, "one after the other"
    concurrent_runs.leave(1)
    assert concurrent_runs.join(3, 2) == WAITS
    concurrent_runs.leave(2)
    assert concurrent_runs.join(3, 2) == JOINED
    assert concurrent_runs.is_alone(3)
    assert [concurrent_runs.join(4, 0), concurrent_runs.join(5, 7)] == [REFUSED, WAITS]
    concurrent_runs.stop_waiting()
    concurrent_runs.leave(3)
    assert concurrent_runs.closed_slots == 0
    assert concurrent_runs.join(4, 0) == JOINED
    assert not concurrent_runs.is_alone(4)


def test_each_loss_leaves_a_quarter_of_the_neighbours() -> None:
    for losses, count in ((2, 75), (3, 18), (4, 4), (5, 1), (7, 1)):
        concurrent_runs = ConcurrentRuns(300, suspect_after=2)
        results = [concurrent_runs.join(run, losses) for run in range(count + 1)]
        assert results[:count] == [JOINED] * count, losses
        assert results[count] in (WAITS, REFUSED), losses
        assert concurrent_runs.closed_slots == 300 - count


def test_a_run_that_another_thread_has_is_left_to_it() -> None:
    concurrent_runs = ConcurrentRuns(4, suspect_after=2)
    concurrent_runs.join(1, 0)
    concurrent_runs.join(2, 2)
    assert elsewhere(lambda: concurrent_runs.join(2, 2)) == KNOWN
    elsewhere(concurrent_runs.stop_waiting)
    assert concurrent_runs.join(2, 2) == WAITS
    assert elsewhere(lambda: concurrent_runs.join(1, 0)) == KNOWN


# --------------------------------------------------------------------- on a worker


class Worker:
    """A gateway's worker, as threads see it that begin runs."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.concurrent_runs = ConcurrentRuns(gateway.slots, django_settings.SUSPECT_AFTER_LOSSES)
        self.going_down, self.spark_away = threading.Event(), threading.Event()

    def watching(self, attempt: RunAttempt) -> Any:
        raise AssertionError(f"attempt {attempt} was begun")


@pytest.fixture
def worker(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    played = Worker(gateway)
    monkeypatch.setattr(supervision, "_WAIT_SECONDS", 0.01)
    with patch.object(supervision, "current", lambda: played):
        yield played


@pytest.fixture
def flights(alice: User) -> Asset:
    return asset("raw_flights", DAILY_2013)


def dispatched(of: Asset, user: User, day: str = "2013-01-01") -> Run:
    run = materialize(MaterializeRequest(asset=of, selection=day), user=user).runs.get()
    dispatch()
    run.refresh_from_db()
    return run


def test_a_run_that_may_not_be_beside_others_goes_back_to_its_queue(
    flights: Asset, alice: User, gateway: Gateway, worker: Worker
) -> None:
    run = dispatched(flights, alice)
    worker.concurrent_runs.join(-1, 2)
    before = timezone.now()
    supervision.execute(run.pk)
    run.refresh_from_db()
    assert run.state == RunState.QUEUED
    assert run.not_before is not None
    assert run.not_before >= before + supervision._REFUSAL_PAUSE


def test_a_run_that_waits_stays_its_workers_until_somebody_cancels_it(
    flights: Asset, alice: User, gateway: Gateway, worker: Worker
) -> None:
    run = dispatched(flights, alice)
    worker.concurrent_runs.join(-1, 0)
    closed_slots: list[int] = []

    def losses_of(run_id: int) -> int | None:
        closed_slots.append(worker.concurrent_runs.closed_slots)
        return 2 if len(closed_slots) < 4 else None

    with patch.object(attempts, "losses_of", losses_of):
        supervision.execute(run.pk)
    assert closed_slots == [0, 2, 2, 2]
    assert worker.concurrent_runs.closed_slots == 0
    assert Run.objects.get().state == RunState.DISPATCHED


def test_nothing_is_sent_to_slots_that_are_kept_free(
    flights: Asset, alice: User, gateway: Gateway
) -> None:
    begun(flights, alice, gateway, "2013-01-01")
    Gateway.objects.update(closed_slots=2)
    assert dispatched(flights, alice, "2013-01-02").state == RunState.QUEUED
    Gateway.objects.update(closed_slots=0)
    assert dispatch() == 1


def test_a_run_that_waits_is_not_taken_from_its_worker(
    flights: Asset, alice: User, gateway: Gateway
) -> None:
    run = dispatched(flights, alice)
    Run.objects.update(dispatched_at=timezone.now() - timedelta(minutes=1))
    Gateway.objects.update(closed_slots=2)
    resend_dispatched()
    run.refresh_from_db()
    assert run.state == RunState.DISPATCHED


def test_a_run_that_waits_at_a_worker_is_not_sent_to_another_one(
    flights: Asset, alice: User, gateway: Gateway, sent: list[tuple[Any, ...]]
) -> None:
    run = dispatched(flights, alice)
    sent.clear()
    Run.objects.update(dispatched_at=timezone.now() - timedelta(minutes=1))
    attempts.note_waiting(run.pk)
    resend_dispatched()
    assert sent == []
    Run.objects.update(dispatched_at=timezone.now() - timedelta(minutes=1))
    resend_dispatched()
    assert len(sent) == 1


def test_a_run_that_was_lost_alone_says_so_when_it_fails(
    flights: Asset, alice: User, gateway: Gateway, settings: Any
) -> None:
    settings.LOST_ATTEMPTS_LIMIT = 4
    run = begun(flights, alice, gateway).run

    def lose(*, times_alone: int) -> str:
        for number in range(1, 5):
            RunAttempt.objects.filter(ended_at=None).update(was_alone=number > 4 - times_alone)
            lose_the_worker()
            recover()
            Run.objects.update(not_before=None)
            dispatch()
            attempts.begin(run.pk, gateway)
        run.refresh_from_db()
        assert run.state == RunState.FAILED
        return run.error

    assert lose(times_alone=2) == (
        "The worker of this attempt was lost: its heartbeat stopped. The run has lost"
        " its worker or its process 4 times, 2 of them without another run on the worker: the"
        " run seems to end the worker, for example by taking all memory of the host."
    )
    retry_run(run, user=alice)
    dispatch()
    attempts.begin(run.pk, gateway)
    assert "4 times, 3 of them without" in lose(times_alone=3), "as counted since the retry"

"""Recovery of a run whose worker sends no heartbeat any more."""

import time
from datetime import timedelta
from typing import Any
from unittest.mock import Mock, patch
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from accounts_app.models import User
from assets_app.execution.attempt import attempts, ending, leases
from assets_app.execution.gateway import recovery
from assets_app.execution.gateway.recovery import recover
from assets_app.execution.queue import messages
from assets_app.execution.queue.control import cancel_run
from assets_app.execution.queue.dispatch import dispatch
from assets_app.models import Gateway, Lease, Run, RunAttempt, RunState
from tests.attempts import begun, staged
from tests.execution.conftest import lose_the_worker
from tests.factories import DAILY_2013, asset, outlet_of

Sent = list[tuple[str, tuple[Any, ...], str]]


def test_a_run_whose_lease_holds_is_left_alone(alice: User, gateway: Gateway) -> None:
    begun(asset("raw_flights", DAILY_2013), alice, gateway)
    assert recover() == 0


def test_a_lost_run_is_begun_again_and_knows_which_session_to_stop(
    alice: User, gateway: Gateway
) -> None:
    lost = begun(asset("raw_flights", DAILY_2013), alice, gateway)
    lose_the_worker()
    assert recover() == 1
    assert Run.objects.get().state == RunState.QUEUED
    dispatch()
    again = attempts.begin(lost.run.pk, gateway)
    assert again is not None
    assert again.unstopped == [lost.row]
    assert not attempts.intend_to_publish(lost.row, [outlet_of(lost, staged(lost))])


def test_a_lease_that_has_run_out_is_doubted_until_nobody_has_renewed_it_for_a_while(
    alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "DOUBT_SECONDS", 0.3)
    attempt = begun(asset("raw_flights", DAILY_2013), alice, gateway)
    lose_the_worker()
    assert recover() == 0
    time.sleep(0.3)
    leases.renew(attempt.row)
    assert recover() == 0
    lose_the_worker()
    assert recover() == 0
    time.sleep(0.3)
    assert recover() == 1
    assert Run.objects.get().state == RunState.QUEUED


def test_a_lease_from_before_the_clock_was_set_back_does_not_hold_for_an_hour(
    alice: User, gateway: Gateway
) -> None:
    begun(asset("raw_flights", DAILY_2013), alice, gateway)
    Lease.objects.update(until=F("until") + timedelta(hours=1))
    assert recover() == 1
    assert Run.objects.get().state == RunState.QUEUED


def test_an_attempt_that_cannot_be_seen_to_keeps_no_other_waiting(
    alice: User, gateway: Gateway
) -> None:
    flights = asset("raw_flights", DAILY_2013)
    odd = begun(flights, alice, gateway, "2013-01-01")
    other_attempt = begun(flights, alice, gateway, "2013-01-02")
    lose_the_worker()
    real = ending.requeue_lost

    def hand_back(attempt: RunAttempt, reason: str, *, counts: bool = False) -> bool:
        if attempt.pk == odd.row.pk:
            raise ValueError("no")
        return real(attempt, reason, counts=counts)

    with patch.object(ending, "requeue_lost", hand_back):
        assert recover() == 2
    assert Run.objects.get(pk=odd.run.pk).state == RunState.RUNNING
    assert Run.objects.get(pk=other_attempt.run.pk).state == RunState.QUEUED


def test_attempts_that_cannot_be_seen_to_keep_no_later_one_from_its_turn(
    alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    flights = asset("raw_flights", DAILY_2013)
    odd = begun(flights, alice, gateway, "2013-01-01").run
    template = RunAttempt.objects.get()
    fields = {
        field.attname: getattr(template, field.attname)
        for field in RunAttempt._meta.concrete_fields
        if not field.primary_key
    }
    run_fields = {
        field.attname: getattr(odd, field.attname)
        for field in Run._meta.concrete_fields
        if not field.primary_key
    }
    Run.objects.update(state=RunState.PUBLISHING)
    runs = Run.objects.bulk_create(
        Run(**run_fields | {"state": RunState.PUBLISHING}) for _ in range(510)
    )
    lost_attempts = RunAttempt.objects.bulk_create(
        RunAttempt(**fields | {"run_id": run.pk, "token": uuid4()}) for run in runs
    )
    Lease.objects.bulk_create(
        Lease(attempt=attempt, until=timezone.now()) for attempt in lost_attempts
    )
    Gateway.objects.update(slots=1_000)
    later_run = begun(flights, alice, gateway, "2013-01-02").run
    lose_the_worker()

    def fail(*_: Any) -> None:
        raise ValueError("no")

    monkeypatch.setattr(recovery, "_ask_for_help", fail)
    # Longer than a slow machine takes for hundreds of failures.
    monkeypatch.setattr(recovery, "_PAUSE_SECONDS", 3600.0)
    recover()
    recover()
    assert Run.objects.get(pk=later_run.pk).state == RunState.QUEUED
    # They are not given up.
    Run.objects.filter(state=RunState.PUBLISHING).exclude(pk=odd.pk).delete()
    assert recover() == 0
    monkeypatch.setattr(recovery, "_PAUSE_SECONDS", 0.0)
    assert recover() == 1


def test_a_run_that_loses_every_worker_fails_in_the_end(alice: User, gateway: Gateway) -> None:
    lost = begun(asset("raw_flights", DAILY_2013), alice, gateway)
    for number in range(1, settings.LOST_ATTEMPTS_LIMIT + 1):
        lose_the_worker()
        recover()
        run = Run.objects.get()
        assert run.lost_attempts == number
        # At once the first time: a worker is lost for many reasons. Later after pauses that differ,
        # so that runs which were lost together come back apart.
        assert run.queued_at is not None
        pause = run.not_before and run.not_before >= run.queued_at + timedelta(seconds=0.5)
        assert bool(run.not_before) == bool(pause) == (1 < number < settings.LOST_ATTEMPTS_LIMIT)
        Run.objects.update(not_before=None)
        dispatch()
        attempts.begin(lost.run.pk, gateway)
    assert (run.state, run.error_kind) == ("failed", "platform")


def test_a_loss_takes_nothing_from_what_a_run_may_fail_by_spark(
    alice: User, gateway: Gateway
) -> None:
    lost = begun(asset("raw_flights", DAILY_2013), alice, gateway)
    Run.objects.update(platform_failures=60)
    lose_the_worker()
    recover()
    run = Run.objects.get()
    assert (run.state, run.lost_attempts, run.not_before) == (RunState.QUEUED, 1, None)
    assert lost.run.pk == run.pk


def test_a_lost_publication_is_for_a_gateway_to_finish(
    alice: User,
    gateway: Gateway,
    sent: Sent,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    lost = begun(asset("raw_flights", DAILY_2013), alice, gateway)
    with transaction.atomic():
        attempts.intend_to_publish(lost.row, [outlet_of(lost, staged(lost))])
    lose_the_worker()
    with django_capture_on_commit_callbacks(execute=True):
        recover()
        # Asked once, and again only when nobody has come.
        recover()
    finish_messages = [row for row in sent if row[0] == messages.FINISH_PUBLISHING]
    assert finish_messages == [
        (messages.FINISH_PUBLISHING, (lost.row.pk, str(lost.row.token)), "scheduled")
    ]
    assert Run.objects.get().state == RunState.PUBLISHING


@pytest.mark.parametrize(("age", "due"), [(5, 10), (300, 30), (36_000, 60)])
def test_a_call_for_help_waits_in_a_full_queue_and_few_follow_it(
    alice: User,
    gateway: Gateway,
    age: int,
    due: int,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    lost = begun(asset("raw_flights", DAILY_2013), alice, gateway)
    cancel_run(lost.run, user=alice)
    lose_the_worker()
    began = timezone.now()
    RunAttempt.objects.update(started_at=began - timedelta(seconds=age))
    with (
        patch.object(messages, "send", Mock()) as send,
        django_capture_on_commit_callbacks(execute=True),
    ):
        recover()
    (call,) = [
        mock_call for mock_call in send.mock_calls if messages.STOP_LOST_ATTEMPT in mock_call.args
    ]
    assert call.kwargs.get("expires") is None
    # However long that took.
    now, asked_again = timezone.now(), Lease.objects.get().until - timedelta(seconds=due)
    assert began <= asked_again <= now + (now - began)


def test_a_lost_run_that_was_being_canceled_is_not_canceled_before_it_is_stopped(
    alice: User,
    gateway: Gateway,
    sent: Sent,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    lost = begun(asset("raw_flights", DAILY_2013), alice, gateway)
    cancel_run(lost.run, user=alice)
    lose_the_worker()
    with django_capture_on_commit_callbacks(execute=True):
        recover()
    assert messages.STOP_LOST_ATTEMPT in [row[0] for row in sent]
    assert Run.objects.get().state == RunState.CANCELING

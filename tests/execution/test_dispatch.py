"""Which queued runs get the slots."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from accounts_app.models import User
from assets_app.execution.attempt import attempts
from assets_app.execution.queue import messages
from assets_app.execution.queue.dispatch import dispatch, resend_dispatched
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, Gateway, Run, RunGroup, RunState
from tests.factories import DAILY_2013, asset

Sent = list[tuple[str, tuple[Any, ...], str]]


def ask(alice: User, name: str, selection: str = "2013-01") -> RunGroup:
    return materialize(
        MaterializeRequest(asset=asset(name, DAILY_2013), selection=selection), user=alice
    )


def dispatched(group: RunGroup) -> int:
    return group.runs.filter(state=RunState.DISPATCHED).count()


def test_no_more_is_sent_than_slots_and_one_ahead_of_each(
    alice: User, gateway: Gateway, sent: Sent
) -> None:
    group = ask(alice, "raw_flights")
    assert dispatch() == 6
    assert dispatch() == 0
    executed = [args[0] for task, args, queue in sent if task == messages.EXECUTE]
    assert executed == list(group.runs.order_by("id").values_list("id", flat=True)[:6])


def test_nothing_is_sent_where_no_gateway_listens(alice: User) -> None:
    ask(alice, "raw_flights")
    assert dispatch() == 0


def test_a_silent_gateway_gets_nothing(alice: User, gateway: Gateway) -> None:
    ask(alice, "raw_flights")
    Gateway.objects.update(last_seen=timezone.now() - timedelta(minutes=1))
    assert dispatch() == 0


def test_a_small_request_does_not_wait_behind_a_large_one(alice: User, gateway: Gateway) -> None:
    large, small = ask(alice, "raw_flights"), ask(alice, "weather", "2013-01-01..2013-01-02")
    dispatch()
    assert (dispatched(large), dispatched(small)) == (4, 2)


def test_a_group_keeps_to_its_max_active_runs(alice: User, gateway: Gateway) -> None:
    group = ask(alice, "raw_flights")
    RunGroup.objects.update(max_active_runs=2)
    dispatch()
    dispatch()
    assert dispatched(group) == 2


def test_a_limit_beyond_all_numbers_keeps_nothing_from_its_slot(
    alice: User, gateway: Gateway
) -> None:
    asset("huge", DAILY_2013, options={"max_active_runs": 10**10})
    materialize(
        MaterializeRequest(asset=Asset.objects.get(name="huge"), selection="2013-01-01"), user=alice
    )
    ask(alice, "raw_flights", "2013-01-01")
    assert dispatch() == 2


def test_a_paused_group_gets_nothing(alice: User, gateway: Gateway) -> None:
    ask(alice, "raw_flights")
    RunGroup.objects.update(paused=True)
    assert dispatch() == 0


def test_a_higher_priority_goes_first(alice: User, gateway: Gateway) -> None:
    usual, urgent = ask(alice, "raw_flights"), ask(alice, "weather")
    RunGroup.objects.filter(pk=urgent.pk).update(priority=5)
    dispatch()
    assert (dispatched(usual), dispatched(urgent)) == (0, 6)


def test_a_retry_waits_for_its_time(alice: User, gateway: Gateway) -> None:
    ask(alice, "raw_flights", "2013-01-01")
    Run.objects.update(not_before=timezone.now() + timedelta(minutes=1))
    assert dispatch() == 0


def test_a_message_that_was_lost_is_sent_again(alice: User, gateway: Gateway, sent: Sent) -> None:
    run = ask(alice, "raw_flights", "2013-01-01").runs.get()
    dispatch()
    Run.objects.update(dispatched_at=timezone.now() - timedelta(seconds=11))
    sent.clear()
    resend_dispatched()
    resend_dispatched()
    assert sent == [(messages.EXECUTE, (run.pk,), "scheduled")]


def test_runs_that_wait_behind_long_ones_are_not_sent_again(
    alice: User, gateway: Gateway, sent: Sent
) -> None:
    ask(alice, "raw_flights")
    assert dispatch() == 6
    at_work = list(Run.objects.filter(state=RunState.DISPATCHED).order_by("id")[:3])
    for run in at_work:
        assert attempts.begin(run.pk, gateway)
    sent.clear()
    for _ in range(3):
        Run.objects.update(dispatched_at=timezone.now() - timedelta(seconds=11))
        resend_dispatched()
    assert sent == []
    # A slot comes free, and one of the messages may have been lost.
    Run.objects.filter(pk=at_work[0].pk).update(state=RunState.CANCELING)
    Run.objects.filter(pk=at_work[0].pk).update(state=RunState.CANCELED, ended_at=timezone.now())
    resend_dispatched()
    resend_dispatched()
    assert [args for _, args, _ in sent] == [(at_work[-1].pk + 1,), (at_work[-1].pk + 2,)]


def test_runs_sent_to_a_lost_gateway_are_requeued(alice: User, gateway: Gateway) -> None:
    ask(alice, "raw_flights", "2013-01-01")
    dispatch()
    Gateway.objects.all().delete()
    Run.objects.update(dispatched_at=timezone.now() - timedelta(seconds=11))
    resend_dispatched()
    assert Run.objects.get().state == RunState.QUEUED

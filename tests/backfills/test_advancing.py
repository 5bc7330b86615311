"""Rounds over unfinished backfills: short, in turn, and one at a time."""

import threading
from datetime import timedelta
from unittest.mock import Mock

import psycopg
import pytest
from django.db import OperationalError
from django.utils import timezone

from accounts_app.models import User
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Run, RunState
from assets_app.scheduling.tasks import tick
from backfills_app import tasks
from backfills_app.models import Backfill, BackfillAsset
from backfills_app.services.advance import advancing, expansion
from backfills_app.services.advance.advancing import advance
from backfills_app.services.request.estimates import runs_at_once
from tests.backfills.driven_backfills import start
from tests.execution.conftest import make_gateway
from tests.factories import DAILY_2013, asset, person
from tests.threads import elsewhere


@pytest.fixture
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a round time for one chunk of ten partitions."""
    monkeypatch.setattr(advancing, "ROUND_SECONDS", 0.0)
    monkeypatch.setattr(expansion, "CHUNK", 10)


def written() -> list[int]:
    """Count the partitions of each backfill that are written down."""
    return list(BackfillAsset.objects.order_by("pk").values_list("expanded", flat=True))


def test_backfills_are_written_down_in_turns(
    alice: User, short_rounds: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    nudges: list[None] = []
    monkeypatch.setattr(advancing, "nudge_advance", lambda: nudges.append(None))
    asset("raw_flights", DAILY_2013)
    for _ in range(3):
        start(alice)
    states = []
    for number in range(1, 5):
        advance()
        states.append(written())
        assert len(nudges) == number
    assert states == [[10, 0, 0], [10, 10, 0], [10, 10, 10], [20, 10, 10]]


def test_no_run_waits_for_backfills_that_are_written_down(alice: User, short_rounds: None) -> None:
    asset("raw_flights", DAILY_2013)
    large = [start(alice) for _ in range(3)]
    small = start(alice, end="2013-01-01")
    expansion.expand(small.pk)
    advance()
    assert Run.objects.filter(group=small.group).exists()
    assert not Run.objects.exclude(group=small.group).exists()
    assert sum(written()) == 10 + 1
    assert len(large) == 3


@pytest.mark.django_db(transaction=True)
def test_one_round_at_a_time_is_made_and_a_tick_waits_for_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alice = person("alice", is_superuser=True)
    make_gateway("scheduled")
    flights = asset("raw_flights", DAILY_2013)
    for _ in range(4):
        start(alice)
    materialize(MaterializeRequest(asset=flights, selection="2013-02-01"), user=alice)
    is_writing, may_go, expand = threading.Event(), threading.Event(), expansion.expand
    writing: list[int] = []

    def slowly(backfill_id: int) -> bool:
        writing.append(backfill_id)
        is_writing.set()
        assert may_go.wait(240)
        return expand(backfill_id)

    monkeypatch.setattr(advancing, "expand", slowly)
    # Another round begins beside a round of two seconds, which a slow machine may take here.
    monkeypatch.setattr(tasks._rounds, "_relieved_after", 3600.0)
    first = elsewhere(tasks.advance)
    assert is_writing.wait(120)
    threads = [elsewhere(tasks.advance) for _ in range(3)]
    try:
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
        assert len(writing) == 1
        tick()
        assert Run.objects.get(group__kind="request").state == RunState.DISPATCHED
    finally:
        may_go.set()
        first.join(120)
    assert written() == [31] * 4


@pytest.mark.parametrize("step", ["expand", "admit"])
@pytest.mark.parametrize("error", [AttributeError, RuntimeError, psycopg.DataError])
def test_whatever_a_plugin_raises_is_said_and_not_tried_again_at_once(
    alice: User, monkeypatch: pytest.MonkeyPatch, step: str, error: type[Exception]
) -> None:
    asset("raw_flights", DAILY_2013)
    backfill = start(alice)
    # Longer than a slow machine takes for three rounds.
    monkeypatch.setattr(advancing, "_SHORTEST_PAUSE", timedelta(hours=1))
    tries: list[int] = []

    def failing(backfill_id: int) -> None:
        tries.append(backfill_id)
        raise error("'Fiscal' object has no attribute 'upstream'")

    monkeypatch.setattr(advancing, step, failing)
    for _ in range(3):
        advance()
    backfill.refresh_from_db()
    assert tries == [backfill.pk]
    assert "'Fiscal' object has no attribute" in backfill.stalled_error


@pytest.mark.parametrize("error", [OperationalError, psycopg.OperationalError])
def test_a_database_that_is_away_says_nothing_of_a_backfill(
    alice: User, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    asset("raw_flights", DAILY_2013)
    backfill = start(alice)
    with monkeypatch.context() as patched:
        patched.setattr(advancing, "expand", Mock(side_effect=error("connection lost")))
        advance()
    backfill.refresh_from_db()
    assert not backfill.stalled_error
    advance()
    assert written() == [31]


@pytest.mark.parametrize("step", ["expand", "admit"])
def test_a_worker_that_lacks_a_plugin_for_a_while_ends_no_backfill(
    alice: User, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    asset("raw_flights", DAILY_2013)
    backfill = start(alice)
    # Longer than a slow machine takes for two rounds.
    monkeypatch.setattr(advancing, "_SHORTEST_PAUSE", timedelta(minutes=3))
    tries: list[int] = []

    def lacking(backfill_id: int) -> None:
        tries.append(backfill_id)
        raise LookupError("No installed package has the mapping 'fiscal'.")

    with monkeypatch.context() as patched:
        patched.setattr(advancing, step, lacking)
        advance()
        backfill.refresh_from_db()
        assert not backfill.ended
        assert "No installed package has the mapping" in backfill.stalled_error
        assert backfill.try_again_at
        # Not at once; later, and after longer pauses.
        advance()
        assert tries == [backfill.pk]
        hour_ago = timezone.now() - timedelta(hours=1)
        Backfill.objects.update(stalled_since=hour_ago, try_again_at=hour_ago)
        advance()
        backfill.refresh_from_db()
        assert tries == [backfill.pk] * 2
        assert backfill.stalled_since == hour_ago
        assert backfill.try_again_at > timezone.now() + timedelta(minutes=4)
    Backfill.objects.update(try_again_at=hour_ago)
    advance()
    backfill.refresh_from_db()
    assert not backfill.stalled_error
    assert not backfill.stalled_since
    assert Run.objects.filter(group=backfill.group).exists()


def test_a_backfill_that_could_not_advance_for_a_day_fails(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    asset("raw_flights", DAILY_2013)
    backfill = start(alice)

    def lacking(backfill_id: int) -> None:
        raise LookupError("No installed package has the mapping 'fiscal'.")

    monkeypatch.setattr(advancing, "expand", lacking)
    advance()
    day_ago = timezone.now() - timedelta(hours=25)
    Backfill.objects.update(stalled_since=day_ago, try_again_at=day_ago)
    advance()
    backfill.refresh_from_db()
    assert backfill.state == "failed"
    assert "No installed package has the mapping" in backfill.error


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_backfill_begins_by_the_clock_of_the_database(
    alice: User, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    asset("raw_flights", DAILY_2013)
    now, of_host = timezone.now(), timezone.now
    early, due = (
        start(alice, end="2013-01-01", start_at=f"{now + timedelta(minutes=30):%Y-%m-%dT%H:%MZ}"),
        start(alice, start="2013-01-02", end="2013-01-02"),
    )
    Backfill.objects.filter(pk=due.pk).update(scheduled_date=now - timedelta(minutes=30))
    monkeypatch.setattr(timezone, "now", lambda: of_host() + timedelta(hours=hours))
    advance()
    assert not Run.objects.filter(group=early.group).exists()
    assert Run.objects.filter(group=due.group).exists()


@pytest.mark.parametrize("hours", [-1, 1])
def test_slots_are_counted_by_the_clock_of_the_database(
    monkeypatch: pytest.MonkeyPatch, db: None, hours: int
) -> None:
    make_gateway("backfill", slots=7)
    of_host = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: of_host() + timedelta(hours=hours))
    assert runs_at_once(100) == 7

"""Beat's messages keep their intervals when the wall clock is changed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from celery import Celery
from django.conf import settings

from slicewise_server.beat import SteadyScheduler
from slicewise_server.intervals import AtMultiples

EVERY = 0.05
RARELY = 0.2


class Wall:
    """A clock that can be set. Time passes by `sleep` alone, however busy this machine is."""

    def __init__(self) -> None:
        self.passed = self.ahead = 0.0

    def __call__(self) -> float:
        return 1_700_000_000.0 + self.passed + self.ahead

    def sleep(self, seconds: float) -> None:
        """Wait; a look takes a moment, too."""
        self.passed += max(seconds, 0.0005)


class Beat(SteadyScheduler):
    """A beat that keeps its messages instead of sending."""

    sent: list[str]

    def apply_async(self, entry: Any, *args: Any, **kwargs: Any) -> None:
        self.sent.append(entry.name)

    def install_default_entries(self, data: Any) -> None:
        """Install no default entries: beat sends the entries of the test alone."""


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Wall:
    wall_clock = Wall()
    monkeypatch.setattr(
        "slicewise_server.beat.time",
        SimpleNamespace(monotonic=lambda: wall_clock.passed, time=wall_clock),
    )
    return wall_clock


def app_by(name: str) -> Celery:
    return Celery(name, set_as_current=False, broker="memory://")


@pytest.fixture
def beat(wall: Wall) -> Beat:
    app = app_by("clock")
    app.conf.beat_schedule = {
        "often": {"task": "often", "schedule": EVERY},
        "rarely": {"task": "rarely", "schedule": RARELY},
    }
    Beat.sent = []
    return Beat(app=app, max_interval=1)


def run(beat: Beat, wall: Wall, seconds: float) -> list[str]:
    """Return the messages that beat sends in a number of seconds."""
    beat.sent.clear()
    end = wall.passed + seconds
    while wall.passed < end:
        wall.sleep(min(beat.tick(), end - wall.passed))
    return list(beat.sent)


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_step_of_the_clock_by_an_hour_makes_no_pause_and_no_crowd(
    beat: Beat, wall: Wall, hours: int
) -> None:
    before = run(beat, wall, 1.0)
    wall.ahead = hours * 3600.0
    after = run(beat, wall, 1.0)
    for name, every in (("often", EVERY), ("rarely", RARELY)):
        assert before.count(name) >= 0.5 / every, name
        assert 0.5 / every <= after.count(name) <= 1 / every + 2, name


def test_a_broker_that_is_away_does_not_end_it(beat: Beat, wall: Wall) -> None:
    with patch.object(Beat, "apply_async", side_effect=OSError("refused")):
        run(beat, wall, 0.3)
    assert run(beat, wall, 0.3)


@pytest.mark.parametrize(
    ("now", "expected"),
    [(10.1, 0.105), (10.203, 0.002), (10.2045, 0.2005), (10.206, 0.199), (17.3, 0.105)],
)
def test_a_tick_comes_a_moment_after_what_ends_with_a_whole_second(
    now: float, expected: float
) -> None:
    assert AtMultiples(0.2).seconds_until_next(now) == pytest.approx(expected, abs=1e-5)


def test_a_beat_that_was_stopped_sends_each_message_once(beat: Beat, wall: Wall) -> None:
    run(beat, wall, 0.3)
    wall.sleep(60)
    assert sorted(run(beat, wall, 0.01)) == ["often", "rarely"]


def test_ticks_by_the_wall_keep_their_number_when_it_is_set(wall: Wall) -> None:
    app = app_by("aligned")
    app.conf.beat_schedule = {"tick": {"task": "tick", "schedule": AtMultiples(0.05)}}
    Beat.sent = []
    beat = Beat(app=app, max_interval=1)
    for hours in (0, -1, 1):
        wall.ahead = hours * 3600.0
        assert 10 <= len(run(beat, wall, 1.0)) <= 22


def test_a_queue_that_nobody_empties_is_not_filled_without_end(
    wall: Wall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slicewise_server.beat.MOST_WAITING", 5)
    app = app_by("unheard")
    app.conf.beat_schedule = {
        name: {"task": name, "schedule": EVERY, "options": {"queue": queue}}
        for name, queue in (("tick", "full"), ("other", "empty"))
    }
    beat = SteadyScheduler(app=app, max_interval=1)
    with app.connection() as connection:
        channel: Any = connection.default_channel
        while wall.passed < 1.0:
            wall.sleep(min(beat.tick(), 0.05))
            channel.queue_purge("empty")
        assert channel.queue_declare("full").message_count == 5
    assert not beat._waiting("empty")


@pytest.mark.parametrize("entry", settings.CELERY_BEAT_SCHEDULE.values(), ids=lambda e: e["task"])
def test_no_message_of_beat_depends_on_the_clock_of_its_receiver(entry: dict[str, Any]) -> None:
    app = Celery("sender", set_as_current=False, broker="memory://")
    app.send_task(entry["task"], **entry["options"])
    queue = entry["options"]["queue"]
    with app.connection() as connection:
        channel: Any = connection.default_channel
        message = channel.basic_get(queue, no_ack=True)
    assert (message.headers["expires"], message.headers["eta"]) == (None, None)

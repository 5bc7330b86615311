"""Row 4: kill -9 of beat, and two beats at once."""

import time
from datetime import datetime, timedelta

import pytest

from slicewise_server.stack.commands import BEAT
from slicewise_server.stack.demo.client import Client
from tests.faults.conftest import Recovered
from tests.faults.stack_processes import Crew, until
from tests.faults.ticking import Metronome

pytestmark = pytest.mark.fault(4)


def test_a_killed_beat_and_two_at_once_lose_no_tick_and_double_none(
    crew: Crew, api: Client, recovered: Recovered
) -> None:
    with Metronome(crew, api) as metronome:
        metronome.await_ticks(2)
        crew.kill("beat")
        killed = time.monotonic()
        restart = database_now(crew)
        until(lambda: metronome.handled_until() > restart + timedelta(seconds=1), "ticks go on")
        recovered("kill -9 of beat", time.monotonic() - killed)

        crew.hire("second-beat", BEAT)
        until(lambda: "beat started" in crew.log("second-beat"), "a second one beats")
        metronome.await_ticks(4)
        crew.kill("beat")
        metronome.await_ticks(2)
    metronome.assert_each_second_once()


def database_now(crew: Crew) -> datetime:
    """Return the present, by the clock of the ticks."""
    now: datetime = crew.value("SELECT clock_timestamp()")
    return now

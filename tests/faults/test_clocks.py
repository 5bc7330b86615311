"""Row 12: the clock stepped by an hour, and a daylight-saving change under way.

No test sets the machine's clock: processes start with a clock of their own, which a file sets, and
a step of the database's clock is played by rows as the step leaves the rows.
"""

import random
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from assets_app.models import AssetPartition, Run, ScheduleTick
from assets_app.scheduling.ticking import handle_ticks
from slicewise import PartitionByInterval
from slicewise_server.stack.commands import COMMANDS
from slicewise_server.stack.demo.client import Client
from tests.faults.conftest import Recovered
from tests.faults.stack_processes import Crew, until
from tests.faults.ticking import Metronome
from tests.health import is_healthy
from tests.scheduling.scheduled_assets import cron, scheduled

pytestmark = pytest.mark.fault(12)

HOUR = timedelta(hours=1)

# Python imports it before anything else. Only what reads the time of day is changed: pauses and
# timeouts go by a clock that nobody sets.
_SITE = """
import datetime, os, time

_file, _real, _day = os.environ["WALL_CLOCK"], time.time, datetime.datetime

def _ahead():
    try:
        with open(_file) as file:
            return float(file.read() or 0)
    except (OSError, ValueError):
        return 0.0

class _Kind(type):
    def __instancecheck__(cls, one):
        return isinstance(one, _day)
    def __subclasscheck__(cls, kind):
        return issubclass(kind, _day)

class datetime_(_day, metaclass=_Kind):
    @classmethod
    def now(cls, tz=None):
        return _day.fromtimestamp(_real() + _ahead(), tz)
    @classmethod
    def utcnow(cls):
        return _day.fromtimestamp(_real() + _ahead(), datetime.timezone.utc).replace(tzinfo=None)

datetime_.__name__ = datetime_.__qualname__ = "datetime"
datetime.datetime = datetime_
time.time = lambda: _real() + _ahead()

# The time by this process's clock, for the test: the time of the file is by the kernel's clock.
with open(f"{_file}.{os.getpid()}", "w") as told:
    told.write(f"{time.time()} {datetime.datetime.now(datetime.timezone.utc).timestamp()}")
"""
# A process starts within this time after it has told its clock.
_EXACT_SECONDS = 60.0

_LEASES = "UPDATE assets_app_lease SET until = until + %s"
_GATEWAYS = "UPDATE assets_app_gateway SET last_seen = last_seen + %s"
_SENT = """
UPDATE assets_app_run SET dispatched_at = dispatched_at + %s, queued_at = queued_at + %s
WHERE ended_at IS NULL
"""


def request_patient_run(api: Client, selection: str, seconds: float) -> int:
    """Request a run that takes so long."""
    (run,) = api.post(
        "/assets/patient/materialize/", selection=selection, params={"seconds": seconds}
    )["runs"]
    return int(run)


def assert_apart(clock: Path, pid: int, seconds: float) -> None:
    """Require that a process has a clock of its own, which is ahead by so many seconds."""
    told = clock.with_name(f"{clock.name}.{pid}")
    until(told.exists, f"process {pid} tells its clock by {clock.name}")
    ahead = [float(text) - told.stat().st_mtime for text in told.read_text().split()]
    assert len(ahead) == 2, "both clocks of Python are told"
    assert all(abs(found - seconds) < _EXACT_SECONDS for found in ahead), (clock.name, ahead)


@pytest.fixture
def wall(crew: Crew, tmp_path: Path) -> Path:
    """Return the clock of beat and all workers: the seconds by which the clock is ahead."""
    (tmp_path / "sitecustomize.py").write_text(_SITE)
    ahead = tmp_path / "ahead"
    ahead.write_text("0")
    env = {"PYTHONPATH": str(tmp_path), "WALL_CLOCK": str(ahead)}
    for name in ("worker-control", "worker-bulk", "worker-scheduled", "beat"):
        crew.halt(name)
    crew.hire("clock-control", COMMANDS["worker-control"], env)
    crew.hire("clock-bulk", COMMANDS["worker-bulk"], env)
    crew.hire_gateway("clock-scheduled", env=env)
    crew.hire("clock-beat", COMMANDS["beat"], env)
    until(lambda: "beat started" in crew.log("clock-beat"), "beat has begun")
    for name in ("clock-control", "clock-bulk", "clock-scheduled", "clock-beat"):
        assert_apart(ahead, crew.pid(name), 0)
    return ahead


@pytest.mark.rounds
def test_a_step_of_the_clock_of_all_hosts_loses_no_tick_and_doubles_none(
    crew: Crew, api: Client, wall: Path, recovered: Recovered
) -> None:
    def step(seconds: float, direction: str) -> None:
        wall.write_text(str(seconds))
        recovered(f"clock {direction}: the next two ticks", metronome.await_ticks(2, seconds=20))

    run = request_patient_run(api, "2001-05-01", 12.0)
    with Metronome(crew, api) as metronome:
        metronome.await_ticks(1, seconds=60)
        step(3600, "put forward by an hour")
        step(0, "put right")
        step(-3600, "put back by an hour")
        step(0, "put right again")
    metronome.assert_each_second_once()
    assert crew.await_run(run) == "succeeded"
    assert [outcome for _, outcome, _ in crew.attempts(run)] == ["succeeded"]


APART = {"web": 1, "beat": -1, "control": 2, "bulk": -2, "scheduled": 3, "backfill": -3}


@pytest.fixture
def hosts_apart(crew: Crew, tmp_path: Path) -> None:
    """Give each process of Slicewise a clock that is hours away from all other clocks."""
    (tmp_path / "sitecustomize.py").write_text(_SITE)
    for name, hours in APART.items():
        (tmp_path / name).write_text(str(hours * 3600))
        env = {"PYTHONPATH": str(tmp_path), "WALL_CLOCK": str(tmp_path / name)}
        command = name if name in COMMANDS else f"worker-{name}"
        crew.halt(command)
        if name in ("scheduled", "backfill"):
            crew.hire_gateway(f"apart-{name}", name, env)
        else:
            crew.hire(f"apart-{name}", COMMANDS[command], env)
    until(lambda: "beat started" in crew.log("apart-beat"), "beat has begun")
    until(lambda: is_healthy(crew.stack.web_url, seconds=5), "the pages answer")
    for name, hours in APART.items():
        assert_apart(tmp_path / name, crew.pid(f"apart-{name}"), hours * 3600)


@pytest.mark.rounds
@pytest.mark.usefixtures("hosts_apart")
def test_hosts_whose_clocks_are_hours_apart_make_all_that_is_due(crew: Crew, api: Client) -> None:
    with Metronome(crew, api) as metronome:
        metronome.await_ticks(3, seconds=60)
        run = request_patient_run(api, "2001-05-04", 0.1)
        assert crew.await_run(run, seconds=60) == "succeeded"
        # In the second round the partitions of the first are there.
        body = {"asset": "patient", "start": "2001-05-05", "end": "2001-05-06", "existing": "all"}
        backfill = api.post("/backfills/", **body, params={"seconds": 0.1})
        address = f"/backfills/{backfill['id']}/"
        until(lambda: api.get(address)["state"] == "succeeded", "the backfill ends", seconds=60)
    metronome.assert_each_second_once()
    assert [outcome for _, outcome, _ in crew.attempts(run)] == ["succeeded"]
    crew.assert_sound()


@pytest.mark.parametrize("step", [-HOUR, HOUR], ids=["forward", "back"])
def test_a_step_of_the_database_clock_takes_no_run_from_its_worker(
    crew: Crew, api: Client, step: timedelta, recovered: Recovered
) -> None:
    """After a clock is put forward, all rows on record are longer ago by the clock."""
    run = request_patient_run(api, "2001-05-02", 5.0)
    crew.await_run(run, "running")
    began = time.monotonic()
    for statement in (_LEASES, _GATEWAYS):
        crew.rows(statement, step)
    crew.rows(_SENT, step, step)
    second_run = request_patient_run(api, "2001-05-03", 0.1)
    assert crew.await_run(second_run) == "succeeded"
    direction = "forward" if step < timedelta() else "back"
    recovered(f"clock of the database put {direction}: the next run", time.monotonic() - began)
    assert crew.await_run(run) == "succeeded"
    assert [outcome for _, outcome, _ in crew.attempts(run)] == ["succeeded"]


ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "UTC"]
_SINCE, _UNTIL = datetime(2018, 1, 1, tzinfo=UTC), datetime(2019, 1, 1, tzinfo=UTC)


def changes(zone: str) -> list[datetime]:
    """Find the times at which the clocks of a place were set in 2018, to the half hour."""
    place, instants = ZoneInfo(zone), []
    instant = _SINCE
    while instant < _UNTIL:
        if (
            instant.astimezone(place).utcoffset()
            != (instant - timedelta(minutes=30)).astimezone(place).utcoffset()
        ):
            instants.append(instant)
        instant += timedelta(minutes=30)
    return instants or [datetime(2018, 3, 25, 1, tzinfo=UTC)]


@pytest.mark.django_db
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("cadence", ["@hourly", "@daily"])
def test_a_change_of_daylight_saving_makes_no_partition_twice_and_none_never(
    zone: str, cadence: str
) -> None:
    """The tick gets times around each change, some of them an hour back."""
    rule = PartitionByInterval(cadence, timezone=zone)
    chance = random.Random(f"{zone} {cadence}")
    for number, change in enumerate(changes(zone)):
        around = timedelta(hours=5) if cadence == "@hourly" else timedelta(days=2)
        since, until_ = change - around, change + around
        asset = scheduled(f"a{number}", cron("@hourly"), rule, since=since, timezone=zone)
        now = since
        while now < until_:
            now += timedelta(minutes=chance.choice([7, 61, 150, around.days * 300, -60, -61]))
            handle_ticks(min(now, until_))
        handle_ticks(until_)
        partitions = AssetPartition.objects.filter(asset=asset).order_by("window_start")
        ends = [partition.window_end for partition in partitions]
        assert ends == expected_ends(zone, cadence, since, until_)
        assert len({partition.key for partition in partitions}) == len(ends)
        runs = Run.objects.filter(asset=asset)
        assert runs.count() == len(ends) == sum(runs.values_list("partition_count", flat=True))
        ticks = ScheduleTick.objects.filter(schedule__producer=asset.producer)
        assert sum(ticks.values_list("queued", flat=True)) == len(ends)


def expected_ends(zone: str, cadence: str, since: datetime, until_: datetime) -> list[datetime]:
    """Return the ends of hours or days of a place, counted on its clock, half hour by half hour."""
    place, ends = ZoneInfo(zone), []
    instant = since
    while instant < until_:
        instant += timedelta(minutes=30)
        here = instant.astimezone(place)
        before = (instant - timedelta(minutes=30)).astimezone(place)
        new_hour = here.minute == 0
        new_day = here.date() != before.date()
        if new_day if cadence == "@daily" else new_hour:
            ends.append(instant)
    return ends

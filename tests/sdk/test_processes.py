"""Boundaries are the same in every process, for any clock, zone, hash seed or database."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

# Patches the clock, imports the package under it, and prints what it cuts.
PROGRAM = """
import datetime, hashlib, os, sys, time

CLOCK = float(sys.argv[1])
if CLOCK:
    class Frozen(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls.fromtimestamp(CLOCK, tz)
        @classmethod
        def utcnow(cls):
            return cls.fromtimestamp(CLOCK, datetime.timezone.utc).replace(tzinfo=None)
    class Today(datetime.date):
        @classmethod
        def today(cls):
            return Frozen.now().date()
    local, utc = time.localtime, time.gmtime
    time.time, time.time_ns = (lambda: CLOCK), (lambda: int(CLOCK * 10**9))
    time.localtime = lambda seconds=CLOCK: local(seconds)
    time.gmtime = lambda seconds=CLOCK: utc(seconds)
    plain, datetime.datetime, datetime.date = datetime.datetime, Frozen, Today
    import croniter
    assert croniter.croniter("* * * * *").cur == CLOCK, "the clock was not changed"
    datetime.datetime, datetime.date = plain, Today.__base__
if hasattr(time, "tzset"):
    time.tzset()

from slicewise import PartitionByInterval

digest = hashlib.sha256()
for zone in ("Australia/Lord_Howe", "America/St_Johns", "Africa/Casablanca", "America/Vancouver"):
    for cadence in ("@hourly", "@daily", "30 2 * * *", "5-50/15 3-20/5 L * 1#1",
                    datetime.timedelta(hours=7)):
        for year in (1999, 2024, 2050):
            windows = PartitionByInterval(
                cadence, timezone=zone, start=f"{year}-01-01", end=f"{year + 1}-01-01",
                exclude=("0 0 * * 6", f"{year}-04-05"),
            ).windows()
            for window in list(windows)[::-61]:
                digest.update(repr((window.text, window.start, window.end)).encode())
            digest.update(repr(len(windows)).encode())
lord_howe = PartitionByInterval("@hourly", timezone="Australia/Lord_Howe")
print(digest.hexdigest(), *lord_howe.select("2024-04-06..2024-04-08"))
"""
SUMMER, WINTER, EARLIER, LATER = 1_719_800_000, 1_704_500_000, 930_000_000, 2_230_000_000


def _run(clock: float, **env: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(clock)],
        env={**os.environ, **env},
        check=False,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def usual() -> str:
    """Return the output of a process with the machine's own clock and zone."""
    return _run(0)


@pytest.mark.parametrize(
    ("clock", "env"),
    [
        (SUMMER, {"TZ": "Australia/Lord_Howe", "PYTHONHASHSEED": "1"}),
        (WINTER, {"TZ": "Australia/Lord_Howe", "PYTHONHASHSEED": "2"}),
        (SUMMER, {"TZ": "America/New_York", "PYTHONHASHSEED": "3"}),
        (WINTER, {"TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "4"}),
        (EARLIER, {"TZ": "Pacific/Apia", "PYTHONHASHSEED": "5"}),
        (LATER, {"TZ": "Antarctica/Troll", "PYTHONHASHSEED": "6"}),
    ],
)
def test_clock_zone_and_hashes_of_a_process_move_no_boundary(
    usual: str, clock: int, env: Mapping[str, str]
) -> None:
    assert _run(clock, **env) == usual


def test_the_machines_own_zones_are_never_read(usual: str, tmp_path: Path) -> None:
    assert _run(0, PYTHONTZPATH=str(tmp_path)) == usual
    # A database in which Lord Howe is a zone without changes.
    (tmp_path / "Australia").mkdir()
    (tmp_path / "Australia" / "Lord_Howe").write_bytes(_fixed_zone())
    assert _run(0, PYTHONTZPATH=str(tmp_path)) == usual


def _fixed_zone() -> bytes:
    from importlib.resources import files

    return (files("tzdata") / "zoneinfo" / "Etc" / "GMT-5").read_bytes()


def test_the_day_of_change_is_cut_as_it_should_be(usual: str) -> None:
    hours = usual.split()[1:]
    assert hours[24:27] == [
        "2024-04-07T00:00+11:00",
        "2024-04-07T01:00+11:00",
        "2024-04-07T02:00+10:30",
    ]
    assert len(hours) == 72

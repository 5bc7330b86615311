"""Fates of runs and acts of people, drawn from digests.

The product and the reference meet the same fate without a message between both.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from tests.simulation.calendar import HALF_HOUR, Window, windows
from tests.simulation.declarations import DeclaredAsset

# A partition: the start of its window, if it has one, and its segment or key.
Partition = tuple[datetime | None, str]
WHOLE: Partition = (None, "")
# Runs end ten minutes after a half hour, people act twenty minutes after it, ticks come on it:
# nothing that is compared ever happens at one instant.
_RUN_END = timedelta(minutes=10)
_ACTION = timedelta(minutes=20)
# The prefix of the names of assets half of whose attempts fail.
FLAKY = "flaky_"
# The prefix of the names of assets whose failures nobody sees.
NEGLECTED = "neglected_"
CUSTOMERS = ("acme", "globex", "initech", "umbrella", "wayne")


def draw(*facts: object) -> float:
    """Return a number from 0 to 1 that follows from the facts."""
    digest = hashlib.sha256(repr(facts).encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64


def is_made_again(asset: str, partition: Partition, morning: datetime) -> bool:
    """Return whether a person makes a failed partition again on a morning: on half of them."""
    return not asset.startswith(NEGLECTED) and draw("retry", asset, partition, morning) < 0.5


@dataclass(frozen=True)
class Fate:
    """The course of a run: its end, its failure, and the keys that the run finds."""

    ends_at: datetime
    fails: bool
    customers: tuple[str, ...]


def fate_of(asset: str, partitions: Sequence[Partition], ordinal: int, began: datetime) -> Fate:
    """Return the course of the run of these partitions; `ordinal` counts the runs before."""
    facts = (asset, sorted(partitions, key=repr), ordinal)
    long = draw("long", *facts)
    halves = 0 if long < 0.7 else 1 if long < 0.85 else 3 if long < 0.97 else 60
    base = datetime(began.year, began.month, began.day, tzinfo=UTC)
    rounded = base + ((began - base) // HALF_HOUR) * HALF_HOUR + _RUN_END
    if rounded <= began:
        rounded += HALF_HOUR
    customers = tuple(name for name in CUSTOMERS if draw(name, *facts) < 0.3)
    fails = draw("fails", *facts) < (0.5 if asset.startswith(FLAKY) else 0.06)
    return Fate(rounded + halves * HALF_HOUR, fails, customers)


@dataclass(frozen=True)
class Action:
    """Something that a person or another program does at an instant."""

    at: datetime
    # "make", "pause", "unpause", "report", "retry" or "declare".
    kind: str
    asset: str = ""
    partition: Partition = WHOLE


def actions(
    assets: Iterable[DeclaredAsset], begin: datetime, end: datetime, declared_at: Iterable[datetime]
) -> list[Action]:
    """Return all that is done from outside, in order."""
    planned_actions = [Action(instant, "declare") for instant in declared_at]
    for declared in assets:
        if declared.is_external:
            planned_actions += _reports(declared, begin, end)
        else:
            # Assets that are made together are paused together.
            if not declared.is_made_beside:
                planned_actions += _pauses(declared, begin, end)
            planned_actions += _requests(declared, begin, end)
    days = (end - begin).days
    planned_actions += [
        Action(begin + timedelta(days=day, hours=9) + _ACTION, "retry") for day in range(days)
    ]
    return sorted(
        (action for action in planned_actions if begin < action.at < end),
        key=lambda action: (action.at, action.kind, action.asset, repr(action.partition)),
    )


def _reports(declared: DeclaredAsset, begin: datetime, end: datetime) -> list[Action]:
    """Return the reports of an external asset: most prompt, some days late, some corrections."""
    reports = []
    for window in windows(str(declared.cadence), declared.zone):
        if not begin <= window.end < end:
            continue
        lateness = draw("late", declared.name, window.start)
        if declared.is_unreliable:
            # A third never comes, and most others come late.
            if draw("never", declared.name, window.start) < 0.33:
                continue
            lateness /= 3
        delay = (
            timedelta(hours=60) if lateness < 0.05 else timedelta(hours=5 if lateness < 0.2 else 1)
        )
        reported_at = _on_action(window.end + delay)
        reports.append(Action(reported_at, "report", declared.name, (window.start, "")))
        if draw("correction", declared.name, window.start) < 0.1:
            reports.append(
                Action(reported_at + timedelta(days=4), "report", declared.name, (window.start, ""))
            )
    return reports


def _pauses(declared: DeclaredAsset, begin: datetime, end: datetime) -> list[Action]:
    pauses = []
    for week in range((end - begin).days // 7):
        if draw("pause", declared.name, week) < 0.05:
            paused_at = _on_action(begin + timedelta(days=7 * week + 2, hours=11))
            pauses.append(Action(paused_at, "pause", declared.name))
            pauses.append(Action(paused_at + timedelta(hours=53), "unpause", declared.name))
    return pauses


def _requests(declared: DeclaredAsset, begin: datetime, end: datetime) -> list[Action]:
    """Return requests by hand for partitions that are over."""
    requests = []
    for day in range((end - begin).days):
        if declared.is_runtime or draw("request", declared.name, day) > 0.04:
            continue
        requested_at = _on_action(
            begin + timedelta(days=day, hours=int(24 * draw("hour", declared.name, day)))
        )
        segment = ""
        if declared.segments:
            number = int(len(declared.segments) * draw("segment", declared.name, day))
            segment = declared.segments[number]
        start = None
        if declared.cadence is not None:
            start = _recent_window(declared, requested_at, draw("window", declared.name, day)).start
        requests.append(Action(requested_at, "make", declared.name, (start, segment)))
    return requests


def _recent_window(declared: DeclaredAsset, instant: datetime, number: float) -> Window:
    first = datetime.fromisoformat(declared.start).replace(tzinfo=ZoneInfo(declared.zone))
    ended = [
        window
        for window in windows(str(declared.cadence), declared.zone)
        if first <= window.start
        and window.end <= instant
        and not (declared.without_weekends and is_weekend(window.start, declared.zone))
    ]
    recent = ended[-4:]
    return recent[int(len(recent) * number)]


def is_weekend(instant: datetime, zone: str) -> bool:
    """Return whether a clock of the zone shows a Saturday or Sunday."""
    return instant.astimezone(ZoneInfo(zone)).weekday() >= 5


def _on_action(instant: datetime) -> datetime:
    base = datetime(instant.year, instant.month, instant.day, tzinfo=UTC)
    return base + ((instant - base) // HALF_HOUR) * HALF_HOUR + _ACTION

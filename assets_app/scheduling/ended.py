"""What ends with a tick: worked out once for all schedules that stand alike, of thousands."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.conf import settings

import slicewise
from assets_app.catalogue.timetables import time_rule
from slicewise.due import before, ended_between, latest
from slicewise.partition_set import PartitionSet
from slicewise.rows import PartitionRow, partition_rows
from slicewise.time_rules import TimeRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What decides which partitions a tick is about: equal terms, equal partitions."""

    rule: str
    # Ticks up to then are handled.
    since: datetime
    # Fingerprint of the partition definition, and which keys of it are known; empty without one.
    definition: tuple[str, ...]
    pending: str | None
    refresh: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The last tick up to now, and the partitions that it is about."""

    at: datetime
    # Up to then windows are seen to: before `at` where more ended than one tick makes.
    until: datetime
    next_at: datetime | None
    # Ticks that it stands for.
    count: int
    due: Sequence[PartitionRow]
    passed_over: Sequence[PartitionRow]
    # The last few before those that are due, to be made again where they are there.
    refreshed: Sequence[PartitionRow]
    # What would be made again besides, and is more than one tick makes again.
    left_out: PartitionSet | None = None

    @property
    def keys(self) -> list[str]:
        """Keys of all these partitions."""
        return [row.key for rows in (self.due, self.passed_over, self.refreshed) for row in rows]


class EndedPartitions:
    """What ends with the ticks up to one moment, by the terms of a schedule."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._known: dict[Terms, Ended | None] = {}

    def of(self, terms: Terms, definition: slicewise.PartitionDefinition | None) -> Ended | None:
        """Return the windows that ended by the ticks of the terms; None before the first tick."""
        if terms not in self._known:
            self._known[terms] = _ended(terms, definition, self._now)
        return self._known[terms]


def rule_text(rule: Mapping[str, Any]) -> str:
    """Return the text by which terms name a schedule by time."""
    return json.dumps(rule, sort_keys=True)


@lru_cache(maxsize=1024)
def _parsed(text: str) -> TimeRule:
    return time_rule(json.loads(text))


def _ended(
    terms: Terms, definition: slicewise.PartitionDefinition | None, now: datetime
) -> Ended | None:
    rule = _parsed(terms.rule)
    at = rule.last_until(now)
    if at is None:
        return None
    due, until = None, at
    if definition is not None:
        due = ended_between(definition, terms.since, at)
        if len(due) > settings.MAX_PARTITIONS_PER_TICK:
            due, until = _cut(due, at)
    wanted = latest(due) if due and terms.pending == "latest" else due
    again: PartitionSet | None = None
    left_out: PartitionSet | None = None
    if definition is not None and due and due.hull is not None and terms.refresh:
        again, left_out = _made_again(definition, due.hull.start, terms.refresh)
    return Ended(
        at=at,
        until=until,
        # One that was cut short ticks again at once.
        next_at=at if until < at else rule.next_after(at),
        count=max(1, rule.count(terms.since, at)),
        due=list(partition_rows(definition, wanted)),
        passed_over=[] if due is None or wanted is None else _rows(due - wanted),
        refreshed=[] if again is None else _rows(again),
        left_out=left_out,
    )


def _made_again(
    definition: slicewise.PartitionDefinition, until: datetime, windows: int
) -> tuple[PartitionSet, PartitionSet | None]:
    """Return the partitions of the last windows up to a moment, as many as one tick makes, and what
    that leaves out.

    Of windows without a first one nobody can say how many are left out.
    """
    space = definition.space
    most = max(settings.MAX_PARTITIONS_PER_TICK // max(space.segments.count, 1), 1)
    again = before(definition, until, min(windows, most))
    is_bounded = space.windows is not None and space.windows.lowest is not None
    if windows <= most or again.hull is None or not is_bounded:
        return again, None
    return again, before(definition, again.hull.start, windows - most) or None


def _rows(partitions: PartitionSet) -> list[PartitionRow]:
    return list(partition_rows(partitions.definition, partitions))


def _cut(due: PartitionSet, at: datetime) -> tuple[PartitionSet, datetime]:
    """As many of the first windows as one tick makes, and when the last of them ends.

    The rest is for the next ticks, at once: nothing is lost.
    """
    width = due.space.segments.count
    most = max(settings.MAX_PARTITIONS_PER_TICK // width, 1) * width
    if due.hull is None or len(due) <= most:
        return due, at
    first = due[:most]
    return first, at if first.hull is None else first.hull.end

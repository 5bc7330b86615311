"""Partitions that end with a tick, computed once for all alike of thousands of schedules."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.conf import settings

import slicewise
from assets_app.queries.time_rules import time_rule
from slicewise.calendar import TimeSchedule
from slicewise.partitions import (
    PartitionRow,
    PartitionSet,
    ended_between,
    partition_rows,
    partitions_of_last_window,
    partitions_of_last_windows,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The input that decides which partitions a tick is about; equal terms, equal partitions."""

    rule: str
    # Ticks up to this time are handled.
    since: datetime
    # Fingerprint of the partition definition, and revision of its known keys; empty without one.
    definition: tuple[str, ...]
    pending: str
    refresh: int
    # How many rows the tick writes for a window at most: one of each asset that the runs make, if
    # the tick may skip the window.
    rows_per_window: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The last tick up to the present, and the partitions that the tick is about."""

    at: datetime
    # Windows up to this time are handled: before `at` where more windows ended than one tick
    # queues.
    until: datetime
    next_at: datetime | None
    # Number of ticks that this one stands for.
    count: int
    due: Sequence[PartitionRow]
    # Older windows that the tick skips, since the schedule asks for the latest alone.
    superseded: Sequence[PartitionRow]
    # The last few windows before the due ones, to be materialized again where they have data.
    refreshed: Sequence[PartitionRow]
    # Partitions to be materialized again, beyond the number that one tick queues.
    unqueued: PartitionSet | None = None

    @property
    def keys(self) -> list[str]:
        """Keys of the due, superseded and refreshed partitions."""
        return [row.key for rows in (self.due, self.superseded, self.refreshed) for row in rows]

    @property
    def superseded_keys(self) -> list[str]:
        """Keys of the superseded partitions."""
        return [row.key for row in self.superseded]


class EndedPartitions:
    """The partitions that end with the ticks up to one moment, by the terms of a schedule."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._known: dict[Terms, Ended | None] = {}

    def of(
        self, tick_input: Terms, definition: slicewise.PartitionDefinition | None
    ) -> Ended | None:
        """Return the last tick and the partitions that it is about; None before the first tick."""
        if tick_input not in self._known:
            self._known[tick_input] = _ended(tick_input, definition, self._now)
        return self._known[tick_input]


def rule_text(schedule_rule: Mapping[str, Any]) -> str:
    """Return the text of a schedule by time, by which `Terms` are compared."""
    return json.dumps(schedule_rule, sort_keys=True)


@lru_cache(maxsize=1024)
def _parsed(text: str) -> TimeSchedule:
    return time_rule(json.loads(text))


def _ended(
    tick_input: Terms, definition: slicewise.PartitionDefinition | None, now: datetime
) -> Ended | None:
    """Compute the last tick and its partitions; return None before the first tick."""
    tick_rule = _parsed(tick_input.rule)
    tick_at = tick_rule.last_until(now)
    if tick_at is None:
        return None
    due, until = None, tick_at
    if definition is not None:
        due = ended_between(definition, tick_input.since, tick_at)
        most = max(settings.MAX_PARTITIONS_PER_TICK // tick_input.rows_per_window, 1)
        if len(due) > most:
            due, until = _first_windows(due, tick_at, most)
    due_now = due
    if due and tick_input.pending == "latest":
        # The newest window is among those of the next ticks if this tick takes only the first ones.
        due_now = partitions_of_last_window(due) if until == tick_at else due - due
    refresh_set: PartitionSet | None = None
    unqueued: PartitionSet | None = None
    if definition is not None and due and due.hull is not None and tick_input.refresh:
        refresh_set, unqueued = _windows_to_refresh(definition, due.hull.start, tick_input.refresh)
    return Ended(
        at=tick_at,
        until=until,
        # A tick that queued only the first windows is followed by the next tick at once.
        next_at=tick_at if until < tick_at else tick_rule.next_after(tick_at),
        count=max(1, tick_rule.count(tick_input.since, tick_at)),
        due=list(partition_rows(definition, due_now)),
        superseded=[] if due is None or due_now is None else _rows(due - due_now),
        refreshed=[] if refresh_set is None else _rows(refresh_set),
        unqueued=unqueued,
    )


def _windows_to_refresh(
    definition: slicewise.PartitionDefinition, until: datetime, windows: int
) -> tuple[PartitionSet, PartitionSet | None]:
    """Return (partitions, unqueued): the partitions of the last windows up to a moment, as many as
    one tick queues, and the partitions of earlier windows that were to be refreshed as well.

    The second value is None where one tick queues all windows, or where the definition has no first
    window, so that the number of the others is unknown.
    """
    space = definition.space
    most = max(settings.MAX_PARTITIONS_PER_TICK // max(space.segments.count, 1), 1)
    refresh_set = partitions_of_last_windows(definition, until, min(windows, most))
    is_bounded = space.windows is not None and space.windows.lowest is not None
    if windows <= most or refresh_set.hull is None or not is_bounded:
        return refresh_set, None
    return refresh_set, partitions_of_last_windows(
        definition, refresh_set.hull.start, windows - most
    ) or None


def _rows(partitions: PartitionSet) -> list[PartitionRow]:
    return list(partition_rows(partitions.definition, partitions))


def _first_windows(
    due: PartitionSet, tick_at: datetime, most_partitions: int
) -> tuple[PartitionSet, datetime]:
    """Return (windows, end): the first due windows, one at least and otherwise of so many
    partitions, and the end of the last.

    The other windows are for the next ticks, at once: no window is lost.
    """
    width = due.space.segments.count
    most = max(most_partitions // width, 1) * width
    if due.hull is None or len(due) <= most:
        return due, tick_at
    first = due[:most]
    return first, tick_at if first.hull is None else first.hull.end

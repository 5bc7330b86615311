"""The times in a schedule that joins times and assets, and the ticks that meet these times."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property, reduce
from operator import or_
from typing import Any, NamedTuple

import slicewise
from assets_app.models import Schedule
from assets_app.queries.schedule_ticks import next_tick, term_rules, term_text
from assets_app.scheduling.expressions import Match, News, Tick
from slicewise.calendar import TimeSchedule
from slicewise.declaring import is_after, time_terms
from slicewise.keys import WHOLE
from slicewise.partitions import PartitionRow, ended_between

MOMENT = timedelta(microseconds=1)
SECOND = timedelta(seconds=1)
_MOST_WALKED = 1_000


class PresentVersion(NamedTuple):
    """The materialized version of a partition, and when the run of that version began."""

    version: int = 0
    began_at: datetime | None = None


class Ticks(NamedTuple):
    """The last of some ticks, and the number of ticks."""

    last: datetime
    tick_count: int


NEVER_MADE = PresentVersion()


@dataclass(frozen=True, kw_only=True)
class TickTerms:
    """The times in a schedule, as of one moment.

    A window meets a time by a tick at or after the end of the window. A partition without a window
    meets a time by a tick after the run of its present version began. Ticks before the schedule
    began do not count. A window meets a term `After` from so long after its end on: each window has
    one such moment, which is a tick of the schedule too.
    """

    rule: Mapping[str, Any]
    began_at: datetime
    now: datetime
    # From when on ticks are examined now: for all partitions but the keys of `since_by_key`.
    # Earlier ticks have been examined before; without a time, no tick is examined.
    since: datetime | None = None
    since_by_key: Mapping[str, datetime] = field(default_factory=dict)

    @cached_property
    def _rules(self) -> Mapping[str, TimeSchedule]:
        return term_rules(self.rule)

    @cached_property
    def _last(self) -> Mapping[str, datetime | None]:
        """The last tick of each time so far."""
        return {text: tick_rule.last_until(self.now) for text, tick_rule in self._rules.items()}

    @cached_property
    def _spans(self) -> Mapping[str, timedelta]:
        """The spans of the terms `After`, by text."""
        return {
            term_text(term): timedelta(seconds=term["seconds"])
            for term in time_terms(self.rule["schedule"])
            if is_after(term)
        }

    @cached_property
    def _next_clock_tick(self) -> datetime | None:
        """The next tick of the times that all partitions share."""
        ticks = (
            tick_rule.next_after(self.now)
            for text, tick_rule in self._rules.items()
            if text not in self._spans
        )
        return min((tick for tick in ticks if tick is not None), default=None)

    def next_of(self, row: PartitionRow) -> datetime | None:
        """Return when a partition is to be examined again that waits for a time."""
        moments = [moment for moment in self.moments(row) if moment > self.now]
        return min(filter(None, [self._next_clock_tick, *moments]), default=None)

    def moments(self, row: PartitionRow) -> list[datetime]:
        """Return the moments of a partition's terms `After`, past and future."""
        if row.end is None:
            return []
        return sorted({row.end + span for span in self._spans.values()})

    @property
    def last_tick(self) -> datetime | None:
        """The last tick of any of the times so far; None before the first tick."""
        return max((tick for tick in self._last.values() if tick is not None), default=None)

    def since_of(self, key: str) -> datetime | None:
        """Return from when on ticks are examined for a partition; None where no tick is."""
        return self.since_by_key.get(key, self.since)

    def matches(
        self,
        term: Mapping[str, Any],
        row: PartitionRow,
        present: PresentVersion,
        after: datetime | None = None,
    ) -> set[Match]:
        """Return the match of the ticks so far with a time; an empty set without such a tick.

        Ticks before ``after`` do not count, and later moments of terms `After` do not either.
        """
        since = self.since_of(row.key)
        if is_after(term):
            return self._matches_after(term, row, after, since)
        text = term_text(term)
        first, last = self._first(self._rules[text], row, present, after), self._last[text]
        if first is None or last is None or first > self.now:
            return set()
        if since is None or last < since:
            return {Match(Tick.PAST, News.NO_ASSET)}
        is_first = row.end is None or (first >= since and row.end > self.began_at)
        return {Match(Tick.FIRST if is_first else Tick.NOW, News.NO_ASSET)}

    def matches_at_next(
        self,
        term: Mapping[str, Any],
        row: PartitionRow,
        present: PresentVersion,
        after: datetime | None = None,
    ) -> set[Match]:
        """Return the match of the next tick with a time; an empty set without a next tick."""
        if is_after(term):
            return self._matches_after(term, row, after, self.now + MOMENT)
        first = self._first(self._rules[term_text(term)], row, present, after)
        if first is None:
            return set()
        is_first = row.end is None or (first > self.now and row.end > self.began_at)
        return {Match(Tick.FIRST if is_first else Tick.NOW, News.NO_ASSET)}

    def ticks_after(self, handled_until: datetime) -> Ticks:
        """Return the ticks of all times after a moment; there must be at least one."""
        last = self.last_tick or self.now
        counts = [tick_rule.count(handled_until, last) for tick_rule in self._rules.values()]
        if sum(counts) > _MOST_WALKED or len(counts) == 1:
            return Ticks(last, max(1, sum(counts)))
        # Several times may tick at the same moment.
        count, tick = 0, next_tick(self.rule, handled_until)
        while tick is not None and tick <= last:
            count, tick = count + 1, next_tick(self.rule, tick)
        return Ticks(last, max(1, count))

    def ended_since(
        self, definition: slicewise.PartitionDefinition | None, handled_until: datetime
    ) -> slicewise.PartitionSet:
        """Return the partitions that ticks after a moment are about: for each time that ticked
        after the moment, the windows that ended since the tick before; without windows, all
        partitions.
        """
        sets = [slicewise.PartitionSet.of(definition, [])]
        for text, tick_rule in self._rules.items():
            last, before = self._last[text], tick_rule.last_until(handled_until)
            if last is None or last <= handled_until:
                continue
            if definition is None:
                return slicewise.PartitionSet.of(None, [WHOLE])
            span = self._spans.get(text, timedelta(0))
            since = self.began_at if before is None else max(before - span, self.began_at)
            sets.append(ended_between(definition, since, last - span))
        return reduce(or_, sets)

    def _matches_after(
        self,
        term: Mapping[str, Any],
        row: PartitionRow,
        after: datetime | None,
        since: datetime | None,
    ) -> set[Match]:
        """Return the match of a window with a term `After` by a moment: as by a first tick if
        the moment is examined now.
        """
        moment = None if row.end is None else row.end + self._spans[term_text(term)]
        if row.end is None or moment is None or after is None or moment > after:
            return set()
        is_first = since is not None and moment >= since and row.end > self.began_at
        tick = Tick.FIRST if is_first else Tick.NO_TIME
        return {Match(tick, News.NO_ASSET, moment, bool(term.get("remake")))}

    def _first(
        self,
        tick_rule: TimeSchedule,
        row: PartitionRow,
        present: PresentVersion,
        after: datetime | None,
    ) -> datetime | None:
        """Return the first tick that meets a time, past or future."""
        if row.end is not None:
            end = row.end if after is None else max(row.end, after)
            return tick_rule.next_after(max(end - SECOND, self.began_at))
        return tick_rule.next_after(max(present.began_at or self.began_at, self.began_at))


def tick_terms(
    schedule: Schedule,
    now: datetime,
    *,
    since: datetime | None = None,
    since_by_key: Mapping[str, datetime] | None = None,
) -> TickTerms | None:
    """Return the times in a schedule that joins times and assets; None for any other schedule.

    A tick that is not handled yet counts as future: the handler of the tick queues its partitions.
    """
    if not schedule.joins_times or schedule.rule is None:
        return None
    if schedule.has_tick_to_handle(now):
        first = next_tick(schedule.rule, schedule.handled_until)
        now = now if first is None else min(now, first - MOMENT)
    return TickTerms(
        rule=schedule.rule,
        began_at=schedule.began_at,
        now=now,
        since=since,
        since_by_key=since_by_key or {},
    )

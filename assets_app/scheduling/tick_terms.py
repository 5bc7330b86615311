"""The times in a schedule that joins times and assets, and which of their ticks meet them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property, reduce
from operator import or_
from typing import Any, NamedTuple

import slicewise
from assets_app.catalogue.timetables import next_tick, term_rules, term_text
from assets_app.models import Schedule
from assets_app.scheduling.expressions import News, Tick, Way
from slicewise.due import ended_between
from slicewise.keys import WHOLE
from slicewise.rows import PartitionRow
from slicewise.time_rules import TimeRule

MOMENT = timedelta(microseconds=1)
SECOND = timedelta(seconds=1)
_MOST_WALKED = 1_000


class PresentVersion(NamedTuple):
    """The version of a partition that is there, and when the run that made it began."""

    version: int = 0
    began_at: datetime | None = None


class Ticks(NamedTuple):
    """The last one of some ticks, and how many they are."""

    last: datetime
    tick_count: int


NEVER_MADE = PresentVersion()


@dataclass(frozen=True, kw_only=True)
class TickTerms:
    """One look at the times in a schedule.

    A window meets a time by a tick at or after its end, what has no window by one after the run of
    its present version began; both by ticks after the schedule began alone.
    """

    rule: Mapping[str, Any]
    began_at: datetime
    now: datetime
    # From when on ticks are looked at now: by the keys of partitions, and for all others. Earlier
    # ticks have been looked at before; without a moment none is.
    since: datetime | None = None
    since_by_key: Mapping[str, datetime] = field(default_factory=dict)

    @cached_property
    def _rules(self) -> Mapping[str, TimeRule]:
        return term_rules(self.rule)

    @cached_property
    def _last(self) -> Mapping[str, datetime | None]:
        """The last tick of each time so far."""
        return {text: rule.last_until(self.now) for text, rule in self._rules.items()}

    @cached_property
    def next_at(self) -> datetime | None:
        """The next tick of any of the times."""
        return next_tick(self.rule, self.now)

    @property
    def last_tick(self) -> datetime | None:
        """The last tick of any of the times so far; None where none ticked yet."""
        return max((tick for tick in self._last.values() if tick is not None), default=None)

    def since_of(self, key: str) -> datetime | None:
        """Return from when on ticks are looked at for a partition; None where no tick is."""
        return self.since_by_key.get(key, self.since)

    def ways(self, term: Mapping[str, Any], row: PartitionRow, made: PresentVersion) -> set[Way]:
        """Return the way in which a time is met by ticks so far; none where it is not."""
        text = term_text(term)
        first, last = self._first(self._rules[text], row, made), self._last[text]
        if first is None or last is None or first > self.now:
            return set()
        since = self.since_of(row.key)
        if since is None or last < since:
            return {Way(Tick.PAST, News.NO_ASSET)}
        is_first = row.end is None or (first >= since and row.end > self.began_at)
        return {Way(Tick.FIRST if is_first else Tick.NOW, News.NO_ASSET)}

    def ways_at_next(
        self, term: Mapping[str, Any], row: PartitionRow, made: PresentVersion
    ) -> set[Way]:
        """Return the way in which a time will be met by its next tick."""
        first = self._first(self._rules[term_text(term)], row, made)
        if first is None:
            return set()
        is_first = row.end is None or (first > self.now and row.end > self.began_at)
        return {Way(Tick.FIRST if is_first else Tick.NOW, News.NO_ASSET)}

    def ticks_after(self, handled_until: datetime) -> Ticks:
        """Return the ticks of all times after a moment, of which there has to be one."""
        last = self.last_tick or self.now
        counts = [rule.count(handled_until, last) for rule in self._rules.values()]
        if sum(counts) > _MOST_WALKED or len(counts) == 1:
            return Ticks(last, max(1, sum(counts)))
        # Several times may tick together.
        count, tick = 0, next_tick(self.rule, handled_until)
        while tick is not None and tick <= last:
            count, tick = count + 1, next_tick(self.rule, tick)
        return Ticks(last, max(1, count))

    def ended_since(
        self, definition: slicewise.PartitionDefinition | None, handled_until: datetime
    ) -> slicewise.PartitionSet:
        """Return the partitions that ticks after a moment are about: for each time that ticked
        since then the windows that ended since its tick before; without windows all partitions.
        """
        sets = [slicewise.PartitionSet.of(definition, [])]
        for text, rule in self._rules.items():
            last, before = self._last[text], rule.last_until(handled_until)
            if last is None or last <= handled_until:
                continue
            if definition is None:
                return slicewise.PartitionSet.of(None, [WHOLE])
            since = self.began_at if before is None else max(before, self.began_at)
            sets.append(ended_between(definition, since, last))
        return reduce(or_, sets)

    def _first(self, rule: TimeRule, row: PartitionRow, made: PresentVersion) -> datetime | None:
        """Return the first tick that meets a time, of the past or to come."""
        if row.end is not None:
            return rule.next_after(max(row.end - SECOND, self.began_at))
        return rule.next_after(max(made.began_at or self.began_at, self.began_at))


def tick_terms(
    schedule: Schedule,
    now: datetime,
    *,
    since: datetime | None = None,
    since_by_key: Mapping[str, datetime] | None = None,
) -> TickTerms | None:
    """Return the times in a schedule that joins some; None for any other schedule.

    A tick that is not handled yet is still to come: who handles it says what it makes.
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

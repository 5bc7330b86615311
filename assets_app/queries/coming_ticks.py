"""The ticks of a schedule by assets and times that are still to examine a partition."""

from collections.abc import Collection, Sequence
from copy import copy
from datetime import datetime, timedelta
from functools import cached_property

from assets_app.models import Schedule
from assets_app.queries.schedule_ticks import term_rules, term_text
from slicewise.declaring import is_after, time_terms

_SECOND = timedelta(seconds=1)


class ComingTicks:
    """The ticks that are still to examine a partition.

    ``ended_at`` is the end of the partition's window, if any. ``put_off_until`` is the tick until
    which the schedule has put the partition off, if any: that tick and each later one examine the
    partition. ``_since`` is up to when ticks are handled, and ``_began_at`` is when the schedule
    began: in a pause both are the present moment, since the schedule begins anew when the asset is
    unpaused.
    """

    def __init__(
        self,
        schedule: Schedule,
        ended_at: datetime | None,
        now: datetime,
        *,
        put_off_until: datetime | None,
        is_paused: bool,
    ) -> None:
        rule = schedule.rule or {}
        self._rules = term_rules(rule)
        self._ended_at = ended_at
        self._put_off_until = put_off_until
        self._since = now if is_paused else schedule.handled_until
        self._began_at = now if is_paused else schedule.began_at
        self._spans = {
            term_text(term): timedelta(seconds=term["seconds"])
            for term in time_terms(rule["schedule"])
            if is_after(term)
        }

    def until(
        self, ticks: Collection[str], seconds: int, *, has_assets: bool, has_fresh: bool
    ) -> datetime | None:
        """Return the tick that meets the given times, by text, and the longest span of terms
        `After` in seconds, -1 without such a term; None without such a tick. ``has_assets`` and
        ``has_fresh`` say whether an asset that is ready, or one that is fresh, is beside the times.
        """
        is_enough = self.makes_due_without_first_tick(has_assets=has_assets, has_fresh=has_fresh)
        if not ticks and seconds < 0:
            return self._put_off_until if is_enough else None
        if self._ended_at is None:
            return None if seconds >= 0 else self._until_without_window(ticks)
        if not self.examined_at or not (self._is_open or (self._put_off_until and has_assets)):
            return None
        moment = self._ended_at + timedelta(seconds=max(seconds, 0))
        firsts = self._firsts(ticks, moment)
        met_at = _latest(firsts if seconds < 0 else [moment, *firsts])
        if met_at is None or met_at >= self.examined_at:
            return met_at
        if not is_enough:
            return None
        # The first ticks are past: the next tick of any of the times meets the times again.
        next_ticks = [self._rules[text].next_after(self.examined_at - _SECOND) for text in ticks]
        return min(
            (tick for tick in next_ticks if tick is not None),
            default=None if ticks else self._put_off_until,
        )

    def makes_due_without_first_tick(self, *, has_assets: bool, has_fresh: bool) -> bool:
        """Return whether assets make the partition due where no first tick does: assets that are
        ready, or, of a window that ended since the schedule began, assets that are fresh.
        """
        return has_assets or (has_fresh and self._is_open)

    def needs_none(self, ticks: Collection[str], seconds: int) -> bool:
        """Return whether times, given as to `until`, are met without a tick: there is none, or only
        terms `After` whose moments are handled.
        """
        if ticks or seconds < 0:
            return not ticks
        if self._ended_at is None:
            return False
        return self._ended_at + timedelta(seconds=seconds) <= self._since

    def are_over(self, ticks: Collection[str], seconds: int) -> bool:
        """Return whether there are ticks, given as to `until`, that can no longer meet the times:
        none is to come, or one of the times has no tick at which the time is first met.
        """
        if not ticks:
            return False
        if self._ended_at is None:
            return self._until_without_window(ticks) is None
        is_to_come = any(self._rules[text].next_after(self._since) for text in ticks)
        moment = self._ended_at + timedelta(seconds=max(seconds, 0))
        return not is_to_come or None in self._firsts(ticks, moment)

    def examined_after(self, moment: datetime) -> "ComingTicks":
        """Return the ticks as they are if no examination until the moment has an effect."""
        later_ticks = copy(self)
        later_ticks.examinations = frozenset(at for at in self.examinations if at > moment)
        return later_ticks

    @property
    def examined_at(self) -> datetime | None:
        """The next moment at which the window is examined; None where no tick examines the window
        any more.
        """
        return min(self.examinations, default=None)

    @cached_property
    def examinations(self) -> frozenset[datetime]:
        """The moments at which the window is examined, whatever the moments before have found: the
        first tick of each time, or the tick until which the partition is put off.
        """
        if self._put_off_until is not None:
            return frozenset({self._put_off_until})
        if self._ended_at is None:
            return frozenset()
        moments: list[datetime] = []
        for text, tick_rule in self._rules.items():
            if text in self._spans:
                moments.append(self._ended_at + self._spans[text])
                continue
            tick = tick_rule.next_after(max(self._ended_at - _SECOND, self._began_at))
            moments += [] if tick is None else [tick]
        return frozenset(moment for moment in moments if moment > self._since)

    @property
    def _is_open(self) -> bool:
        """Whether times and fresh assets alone make the partition due."""
        return self._ended_at is None or self._ended_at > self._began_at

    def _firsts(self, ticks: Collection[str], moment: datetime) -> list[datetime | None]:
        """Return the first tick of each time that meets the time from a moment on."""
        begin = max(moment - _SECOND, self._began_at)
        return [self._rules[text].next_after(begin) for text in ticks]

    def _until_without_window(self, ticks: Collection[str]) -> datetime | None:
        """Return the first tick at which each of the times has ticked since the schedule began."""
        firsts = [self._rules[text].next_after(self._began_at) for text in ticks]
        next_ticks = (self._rules[text].next_after(self._since) for text in ticks)
        next_tick = min((tick for tick in next_ticks if tick is not None), default=None)
        return _latest([*firsts, next_tick])


def _latest(ticks: Sequence[datetime | None]) -> datetime | None:
    """Return the latest of some ticks; None where one of the ticks never comes."""
    present_ticks = [tick for tick in ticks if tick is not None]
    return max(present_ticks) if len(present_ticks) == len(ticks) else None

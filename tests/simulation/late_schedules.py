"""Schedules with terms of lateness, as `docs/guides/lateness.md` describes the terms.

A schedule is a list of alternatives. A partition is due when all terms of an alternative hold, and
one term is a reason: an upstream version that the partition has not read, or a time that comes
once.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from tests.simulation.alternatives import Alternative
from tests.simulation.calendar import ticks
from tests.simulation.drawn_actions import Partition

if TYPE_CHECKING:
    from tests.simulation.reference import Reference

# The effects of a late input when the input comes.
AS_SCHEDULED, STALE, REMAKE = "as scheduled", "stale", "remake"


@dataclass(frozen=True)
class Input:
    """An upstream asset of one partition."""

    is_ready: bool
    # A needed partition has a version that the partition has not read, or not that version.
    is_unread: bool
    is_changed: bool
    newest_at: datetime | None


@dataclass(frozen=True)
class Due:
    """An alternative that makes a partition due, and whether a tick does."""

    alternative: Alternative
    by_tick: bool


class LateSchedules:
    """The ticks and upstream writes of such schedules in a reference deployment."""

    def __init__(self, reference: "Reference") -> None:
        self.reference = reference

    # ------------------------------------------------------------ what happens
    def tick(self, now: datetime) -> None:
        """Handle the moments of terms `After`, and the ticks beside the terms."""
        for name, declared in self.reference.assets.items():
            if declared.schedule is None or declared.schedule.kind != "alternatives":
                continue
            is_paused = name in self.reference.paused
            since = self.reference.looked_at
            if not is_paused:
                since = self.reference.handled_until[name]
            ended, moments = self._ended(name, since, now)
            if not moments:
                continue
            waiting = {
                partition
                for partition, state in self.reference.states_of(name)
                if state.waits_for_tick and self._has_tick(name, partition, since, now)
            }
            if is_paused:
                self._drop(name, waiting, now)
            else:
                self.reference.handled_until[name] = moments[-1]
                self._tick(name, ended, waiting, since, moments, now)

    def written(self, name: str, partitions: Iterable[Partition], now: datetime) -> None:
        """Examine the partitions that new upstream partitions concern."""
        for partition in sorted(partitions, key=repr):
            self._examine(name, partition, None, now)

    def fresh_again(self, written: Collection[str], now: datetime) -> None:
        """Examine the partitions that wait for a fresh asset, if the asset was written; partitions
        of a paused asset go on waiting.
        """
        for name, declared in self.reference.assets.items():
            if declared.schedule is None or not set(declared.schedule.fresh) & set(written):
                continue
            if name in self.reference.paused:
                continue
            waiting = {
                partition
                for partition, state in self.reference.states_of(name)
                if state.waits_for_fresh or state.waits_for_tick
            }
            for partition in sorted(waiting, key=repr):
                state = self.reference.state(name, partition)
                state.waits_for_fresh = False
                if state.held_by is None:
                    self._examine(name, partition, None, now)
                else:
                    state.due_again = True

    def released(
        self, name: str, requests: Iterable[tuple[Partition, datetime | None]], now: datetime
    ) -> None:
        """Examine partitions that came due while a run held them, with the tick that asked."""
        for partition, ticked_at in requests:
            self._examine(name, partition, ticked_at, now)

    def _tick(
        self,
        name: str,
        ended: Collection[Partition],
        waiting: Collection[Partition],
        since: datetime,
        moments: Sequence[datetime],
        now: datetime,
    ) -> None:
        numbers = Counter[str]()
        for partition in sorted({*ended, *waiting}, key=repr):
            state = self.reference.state(name, partition)
            was_held = state.held_by is not None
            if state.waits_for_tick and partition in waiting:
                state.waits_for_tick = False
                if was_held:
                    state.due_again, state.ticked_at = True, since
            # A tick does not try again what assets alone have made due before.
            is_due = self._examine(
                name, partition, since, now, only_by_tick=partition not in waiting
            )
            if is_due:
                numbers["in_flight" if was_held else "queued"] += 1
            elif not was_held or partition in ended:
                numbers["existing" if state.version else "waiting"] += 1
        self.reference.ticks.add(
            name, moments, queued=numbers["queued"], in_flight=numbers["in_flight"],
            existing=numbers["existing"], waiting=numbers["waiting"],
        )  # fmt: skip

    def _drop(self, name: str, partitions: Iterable[Partition], now: datetime) -> None:
        """Forget partitions that would have been examined during a pause."""
        for partition in partitions:
            state = self.reference.state(name, partition)
            state.waits_for_tick = state.waits_for_fresh = False
            if state.held_by is not None:
                state.due_again, state.ticked_at = True, self.reference.looked_at

    # ------------------------------------------------------------ a look at one partition
    def _examine(
        self,
        name: str,
        partition: Partition,
        since: datetime | None,
        now: datetime,
        *,
        only_by_tick: bool = False,
    ) -> bool:
        """Queue a partition if it is due, and return whether it is; else note what it waits for."""
        state = self.reference.state(name, partition)
        due = self._due(name, partition, since, now)
        if due and (not only_by_tick or any(alternative.by_tick for alternative in due)):
            state.waits_for_fresh = False
            self._queue(name, partition, due, since, now)
            return True
        if due:
            return False
        state.waits_for_tick = state.waits_for_tick or self._is_due_later(name, partition, now)
        state.waits_for_fresh = bool(
            self._due(name, partition, since, now, if_fresh=True)
            or self._is_due_later(name, partition, now, if_fresh=True)
        )
        return False

    def _queue(
        self,
        name: str,
        partition: Partition,
        due: list[Due],
        since: datetime | None,
        now: datetime,
    ) -> None:
        reference = self.reference
        state = reference.state(name, partition)
        by_tick = any(alternative.by_tick for alternative in due)
        effect = AS_SCHEDULED
        if all(alternative.alternative.after for alternative in due):
            effect = REMAKE if any(alternative.alternative.remake for alternative in due) else STALE
        without = self._missing(name, partition, now)
        schedule = reference.assets[name].schedule
        assert schedule is not None
        if effect == REMAKE and set(without) & set(schedule.fresh):
            state.waits_for_fresh = True
        if reference.claim(name, [partition], "schedule" if by_tick else "upstream", now):
            state.due_again = True
            state.ticked_at = since if by_tick else state.ticked_at
            return
        assert state.held_by is not None
        state.held_by.without = without
        state.held_by.late = dict.fromkeys(without, effect)
        for asset, reason in without.items():
            if reason == "missing":
                state.held_by.lacked |= reference.lacking(name, partition, asset, now)

    def _due(
        self,
        name: str,
        partition: Partition,
        since: datetime | None,
        now: datetime,
        *,
        if_fresh: bool = False,
    ) -> list[Due]:
        """Return the alternatives that make a partition due, by ticks after `since` until now."""
        end, began_at = self._end(name, partition), self.reference.began_at[name]
        is_open = self._is_open(name, partition)
        due = []
        for alternative, has_news in self._held(name, partition, now, if_fresh=if_fresh):
            moment, first = end + alternative.span, self._first_tick(name, alternative, end)
            if moment > now or (first is not None and first > now):
                continue
            is_moment = bool(
                alternative.after and since is not None and moment > since and end > began_at
            )
            last = self._last_tick(name, alternative, now)
            if alternative.cron and (since is None or last is None or last <= since):
                continue
            by_first = is_moment or bool(first and since is not None and first > since)
            if has_news or (is_open and (alternative.fresh or by_first)):
                due.append(Due(alternative, bool(alternative.cron) or is_moment))
        return due

    def _is_due_later(
        self, name: str, partition: Partition, now: datetime, *, if_fresh: bool = False
    ) -> bool:
        """Return whether a coming tick makes a partition due if nothing else changes."""
        end = self._end(name, partition)
        is_open = self._is_open(name, partition)
        for alternative, has_news in self._held(name, partition, now, if_fresh=if_fresh):
            is_coming = bool(alternative.after) and end + alternative.span > now
            first = self._first_tick(name, alternative, end)
            is_first_coming = is_coming or (first is not None and first > now)
            if not is_coming and not alternative.cron:
                continue
            if has_news or (is_open and (alternative.fresh or is_first_coming)):
                return True
        return False

    def _held(
        self, name: str, partition: Partition, now: datetime, *, if_fresh: bool
    ) -> Iterable[tuple[Alternative, bool]]:
        """Return the alternatives with all assets materialized and fresh, and whether one is news.

        An alternative with an asset that is materialized and brings no news is no reason.
        """
        schedule = self.reference.assets[name].schedule
        late = self.reference.state(name, partition).late
        assert schedule is not None
        for alternative in schedule.alternatives:
            inputs = [
                (asset, self._input(name, partition, asset, now)) for asset in alternative.assets
            ]
            fresh = [
                (asset, self._input(name, partition, asset, now)) for asset, _ in alternative.fresh
            ]
            if not all(upstream.is_ready for _, upstream in inputs):
                continue
            if not if_fresh and not all(
                _is_fresh(upstream, hours, now)
                for (_, upstream), (_, hours) in zip(fresh, alternative.fresh, strict=True)
            ):
                continue
            has_news = any(
                upstream.is_changed if late.get(asset) == STALE else upstream.is_unread
                for asset, upstream in inputs
            ) or any(
                late.get(asset) == REMAKE and upstream.is_unread
                for asset, upstream in fresh
                if not if_fresh
            )
            if has_news or not alternative.assets:
                yield alternative, has_news

    def _input(self, name: str, partition: Partition, asset: str, now: datetime) -> Input:
        reference = self.reference
        read = reference.state(name, partition).inputs
        wanted, exist = reference.wanted(name, partition, asset, now)
        identity = reference.assets[asset].identity
        states = [(key, reference.state(asset, key)) for key in wanted]
        materialized_states = [(key, state) for key, state in states if state.version]
        return Input(
            is_ready=exist and len(materialized_states) == len(states),
            is_unread=any(
                state.version > read.get((asset, identity, key), 0)
                for key, state in materialized_states
            ),
            is_changed=any(
                state.version > read.get((asset, identity, key), state.version)
                for key, state in materialized_states
            ),
            newest_at=max((state.history[-1][0] for _, state in materialized_states), default=None),
        )

    def _missing(self, name: str, partition: Partition, now: datetime) -> dict[str, str]:
        """Return the assets of a schedule that are missing or old, each with the word for it."""
        schedule = self.reference.assets[name].schedule
        assert schedule is not None
        late = {}
        for alternative in schedule.alternatives:
            for asset in alternative.assets:
                if not self._input(name, partition, asset, now).is_ready:
                    late[asset] = "missing"
            for asset, hours in alternative.fresh:
                upstream = self._input(name, partition, asset, now)
                if not _is_fresh(upstream, hours, now):
                    late[asset] = "missing" if upstream.newest_at is None else "old"
        return late

    # ------------------------------------------------------------ times
    def _ended(
        self, name: str, since: datetime, now: datetime
    ) -> tuple[set[Partition], list[datetime]]:
        """Return the windows that ticks after `since` are about, and these ticks."""
        partitioning, began_at = self.reference.partitioning(name), self.reference.began_at[name]
        schedule = self.reference.assets[name].schedule
        assert schedule is not None
        ended: set[Partition] = set()
        handled: set[datetime] = set()
        for alternative in schedule.alternatives:
            if alternative.after:
                windows = partitioning.ended_between(
                    since - alternative.span, now - alternative.span
                )
                handled |= {window.end + alternative.span for window in windows}
                ended |= {(window.start, "") for window in windows if window.end > began_at}
            last = self._last_tick(name, alternative, now)
            if last is not None and last > since:
                before = self._last_tick(name, alternative, since) or began_at
                handled |= set(self._ticks(name, alternative, since, now))
                windows = partitioning.ended_between(max(before, began_at), last)
                ended |= {(window.start, "") for window in windows}
        return ended, sorted(handled)

    def _has_tick(self, name: str, partition: Partition, since: datetime, now: datetime) -> bool:
        schedule, end = self.reference.assets[name].schedule, self._end(name, partition)
        assert schedule is not None
        moments = [
            end + alternative.span for alternative in schedule.alternatives if alternative.after
        ]
        moments += [
            last
            for alternative in schedule.alternatives
            if (last := self._last_tick(name, alternative, now)) is not None
        ]
        return any(since < moment <= now for moment in moments)

    def _first_tick(self, name: str, alternative: Alternative, end: datetime) -> datetime | None:
        """Return the first tick that counts of the time in an alternative."""
        if not alternative.cron:
            return None
        times = ticks(alternative.cron, self.reference.assets[name].zone)
        number = bisect_left(times, end + alternative.span)
        return times[max(number, bisect_right(times, self.reference.began_at[name]))]

    def _ticks(
        self, name: str, alternative: Alternative, since: datetime, until: datetime
    ) -> Sequence[datetime]:
        times = ticks(alternative.cron, self.reference.assets[name].zone)
        return times[bisect_right(times, since) : bisect_right(times, until)]

    def _last_tick(self, name: str, alternative: Alternative, until: datetime) -> datetime | None:
        if not alternative.cron:
            return None
        times = ticks(alternative.cron, self.reference.assets[name].zone)
        return times[bisect_right(times, until) - 1]

    def _end(self, name: str, partition: Partition) -> datetime:
        start, _ = partition
        assert start is not None
        window = self.reference.partitioning(name).window(start)
        assert window is not None
        return window.end

    def _is_open(self, name: str, partition: Partition) -> bool:
        """Return whether times alone may make a window: once, and no history."""
        is_missing = not self.reference.state(name, partition).version
        return is_missing and self._end(name, partition) > self.reference.began_at[name]


def _is_fresh(upstream: Input, hours: int, now: datetime) -> bool:
    return upstream.newest_at is not None and now - upstream.newest_at <= timedelta(hours=hours)

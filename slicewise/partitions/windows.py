"""The windows of one definition, numbered: bounds, exclusions, lookup (calendar rules 2, 8, 9)."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import chain
from typing import TypeVar, overload

from slicewise.calendar.cadence import CronCadence
from slicewise.calendar.ticks import Ticks, ticks_of
from slicewise.calendar.zones import DAY, Zone
from slicewise.errors import UnboundedPartitionsError
from slicewise.keys.intervals import make_interval, make_intervals
from slicewise.keys.partition_key import Interval
from slicewise.process.gc_tuning import paused_gc

_FIRST_CHUNK, _LARGEST_CHUNK = 64, 16_384  # a caller that needs few windows computes few
_EPOCH_DAY = date(1970, 1, 1).toordinal()
Bound = int | None
T = TypeVar("T", covariant=True)


@dataclass(frozen=True)
class Exclusions:
    """The excluded windows: windows that start at a cron's tick, on a date, or at an instant."""

    crons: tuple[CronCadence, ...] = ()
    dates: tuple[date, ...] = ()
    instants: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.crons or self.dates or self.instants)


class Windows:
    """The windows of a definition. Window n runs from tick n to tick n + 1; numbers span all time.

    The windows of the definition are numbered from `lowest` to `highest` - 1 (None: without end),
    minus the excluded windows. `elapsed` chooses the calendar rule, 5 or 4, for crons in
    exclusions.
    """

    def __init__(
        self,
        ticks: Ticks,
        zone: Zone,
        start: Bound,
        end: Bound,
        exclusions: Exclusions,
        *,
        elapsed: bool,
    ) -> None:
        self.zone = zone
        self.ticks = ticks
        self.lowest = None if start is None else self.ticks.rank(start)
        self.highest = None if end is None else self.last_before(end)
        self._exclusions = exclusions
        self._elapsed = elapsed

    @property
    def has_exclusions(self) -> bool:
        """Whether any window may be excluded."""
        return bool(self._exclusions)

    def last_before(self, end: int) -> int:
        """Return the number after the last window that ends at or before the instant."""
        return self.ticks.rank(end + 1) - 1

    def number_at(self, instant: int) -> int:
        """Return the number of the window that contains the instant, in the definition or not."""
        return self.ticks.rank(instant + 1) - 1

    def window(self, number: int) -> Interval:
        """Return the window of that number."""
        return make_interval(self.ticks.tick(number), self.ticks.tick(number + 1), self.zone)

    def clip(self, first: int, stop: int) -> tuple[int, int]:
        """Return the part of a range of numbers that is within the bounds; first=stop if empty."""
        if self.lowest is not None:
            first = max(first, self.lowest)
        if self.highest is not None:
            stop = min(stop, self.highest)
        return first, max(first, stop)

    def between(self, since: Bound, until: Bound) -> tuple[int, int]:
        """Return the range of the windows wholly inside both [since, until) and the bounds.

        Raises UnboundedPartitionsError for a side without any bound.
        """
        first = self.lowest if since is None else self.ticks.rank(since)
        stop = self.highest if until is None else self.last_before(until)
        if first is None or stop is None:
            side, word = ("start", "since") if first is None else ("end", "until")
            raise UnboundedPartitionsError(
                f"the definition has no {side}: write {side}=, or pass {word}="
            )
        return self.clip(first, stop)

    def has(self, number: int) -> bool:
        """Return whether the definition has the window of that number."""
        if self.lowest is not None and number < self.lowest:
            return False
        if self.highest is not None and number >= self.highest:
            return False
        return not self._exclusions or not self.excluded(number, number + 1)

    def number_of(self, start: int, stop: int) -> int | None:
        """Return the number of the window with these ends, or None if there is no such window."""
        number = self.ticks.number_of(start, stop)
        return number if number is not None and self.has(number) else None

    def count(self, first: int, stop: int) -> int:
        """Return the number of windows in a range of numbers that are not excluded."""
        if first >= stop:
            return 0
        return stop - first - (len(self.excluded(first, stop)) if self._exclusions else 0)

    def runs(self, first: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield the range without excluded windows, as unbroken ranges."""
        for excluded in chain(self._excluded_in_chunks(first, stop), (stop,)):
            if first < excluded:
                yield first, excluded
            first = excluded + 1

    def _excluded_in_chunks(self, first: int, stop: int) -> Iterator[int]:
        """Yield the numbers of the excluded windows in a range, in order, computed in chunks of
        growing size.
        """
        size = _FIRST_CHUNK
        while self._exclusions and first < stop:
            upto = min(first + size, stop)
            yield from self.excluded(first, upto)
            first, size = upto, min(size * 4, _LARGEST_CHUNK)

    def boundaries(self, first: int, stop: int) -> Iterator[Sequence[int]]:
        """Yield the ticks that bound the windows of a range, in chunks of growing size."""
        size = _FIRST_CHUNK
        for low, end in self.runs(first, stop):
            while low < end:
                upto = min(low + size, end)
                yield self.ticks.ticks(low, upto + 1)
                low, size = upto, min(size * 4, _LARGEST_CHUNK)

    def trim(self, first: int, stop: int) -> tuple[int, int]:
        """Return the range without excluded windows at either end."""
        if not self._exclusions or first >= stop:
            return first, stop
        first = next((low for low, _ in self.runs(first, stop)), stop)
        size = _FIRST_CHUNK
        while first < stop:
            low = max(first, stop - size)
            end = max((high for _, high in self.runs(low, stop)), default=low)
            if low < end:
                return first, end
            stop, size = low, min(size * 4, _LARGEST_CHUNK)
        return first, stop

    def excluded(self, first: int, stop: int) -> Sequence[int]:
        """Return the numbers of the excluded windows in a range of numbers, in order."""
        if not self._exclusions or first >= stop:
            return ()
        since, until = self.ticks.tick(first), self.ticks.tick(stop - 1) + 1
        starts = {start for start in self._exclusions.instants if since <= start < until}
        numbers: set[int] = set()
        for ticks in self._exclusion_ticks:
            first_tick, stop_tick = ticks.rank(since), ticks.rank(until)
            if stop_tick - first_tick > stop - first:
                # Each minute of a weekend, for windows of hours: the windows are fewer.
                numbers.update(self._starting_at(ticks, first, stop))
            else:
                starts.update(ticks.ticks(first_tick, stop_tick))
        numbers.update(
            number for start in starts if self.ticks.tick(number := self.ticks.rank(start)) == start
        )
        # Midnight in the zone is less than two days from midnight in UTC.
        near = range(since // DAY + _EPOCH_DAY - 2, until // DAY + _EPOCH_DAY + 3)
        for ordinal in (day.toordinal() for day in self._exclusions.dates):
            if ordinal not in near:
                continue
            midnights = (self._midnight(ordinal + days) for days in (0, 1))
            low, high = (self.ticks.rank(midnight) for midnight in midnights)
            numbers.update(range(max(low, first), min(high, stop)))
        return sorted(numbers)

    def _starting_at(self, ticks: Ticks, first: int, stop: int) -> Iterator[int]:
        """Yield the numbers of the windows in a range that start at a tick of a cron."""
        starts = self.ticks.ticks(first, stop)
        next_ticks = ticks.at(ticks.ranks(starts))
        for number, (start, tick) in enumerate(zip(starts, next_ticks, strict=True), first):
            if tick == start:
                yield number

    def _midnight(self, ordinal: int) -> int:
        return self.zone.first_instant((ordinal - _EPOCH_DAY) * DAY)

    @cached_property
    def _exclusion_ticks(self) -> tuple[Ticks, ...]:
        return tuple(
            ticks_of(cron, self.zone, 0, elapsed=self._elapsed) for cron in self._exclusions.crons
        )


class LazySequence(Sequence[T]):
    """The base of lazy sequences, which are equal to sequences of equal items."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # equal to lists, which have no hash


class WindowSequence(LazySequence[Interval]):
    """The windows of a range of numbers, created on access; slices are sequences again."""

    def __init__(self, windows: Windows, first: int, stop: int) -> None:
        self._windows, self._first, self._stop = windows, first, stop
        self._excluded = windows.excluded(first, stop)

    def __len__(self) -> int:
        return max(0, self._stop - self._first) - len(self._excluded)

    @overload
    def __getitem__(self, index: int) -> Interval: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Interval]: ...
    def __getitem__(self, index: int | slice) -> Interval | Sequence[Interval]:
        if isinstance(index, int):
            return self._windows.window(self._number(range(len(self))[index]))
        positions = range(len(self))[index]
        if not positions:
            return WindowSequence(self._windows, self._first, self._first)
        if positions.step != 1:
            return [self[position] for position in positions]
        return WindowSequence(
            self._windows, self._number(positions[0]), self._number(positions[-1]) + 1
        )

    def __iter__(self) -> Iterator[Interval]:
        for ticks in self._windows.boundaries(self._first, self._stop):
            with paused_gc():
                batch = make_intervals(ticks, self._windows.zone)
            yield from batch

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, Interval):
            return False
        number = self._windows.number_of(key.first_second, key.stop_second)
        return number is not None and self._first <= number < self._stop

    def __repr__(self) -> str:
        return f"<{len(self)} windows>"

    def _number(self, position: int) -> int:
        """Return the number of the window at a position, shifted by excluded windows before it."""
        if not self._excluded:
            return self._first + position
        passed = bisect_right(
            range(len(self._excluded)),
            position,
            key=lambda index: self._excluded[index] - self._first - index,
        )
        return self._first + position + passed

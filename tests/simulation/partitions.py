"""The partitions of a declared asset, and their overlaps with another asset's, by a look at all
windows of both.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from tests.simulation.calendar import Window, windows
from tests.simulation.declarations import DeclaredAsset
from tests.simulation.drawn_actions import WHOLE, Partition, is_weekend


@lru_cache(maxsize=1024)
def _windows_of(
    cadence: str, zone: str, start: str, without_weekends: bool
) -> tuple[tuple[Window, ...], tuple[datetime, ...], tuple[datetime, ...]]:
    """Return the windows of an asset with their starts and ends."""
    first = datetime.fromisoformat(start).replace(tzinfo=ZoneInfo(zone))
    chosen = tuple(
        window
        for window in windows(cadence, zone)
        if window.start >= first and not (without_weekends and is_weekend(window.start, zone))
    )
    return chosen, tuple(w.start for w in chosen), tuple(w.end for w in chosen)


class Partitioning:
    """How an asset is partitioned, given the keys found at run time."""

    def __init__(self, declared: DeclaredAsset, customers: Collection[str]) -> None:
        self.declared = declared
        self.has_time = declared.cadence is not None
        self.is_whole = not (self.has_time or declared.segments or declared.is_runtime)
        self.segments: Sequence[str] = declared.segments or ("",)
        if declared.is_runtime:
            self.segments = sorted(customers)
        if self.has_time:
            self._windows, self._starts, self._ends = _windows_of(
                str(declared.cadence), declared.zone, declared.start, declared.without_weekends
            )

    def without_time(self) -> list[Partition]:
        """Return all partitions of an asset that is not partitioned by time."""
        return [(None, segment) for segment in self.segments]

    def ended_between(self, after: datetime, until: datetime) -> list[Window]:
        """Return the windows that end after one instant and not after another."""
        return list(
            self._windows[bisect_right(self._ends, after) : bisect_right(self._ends, until)]
        )

    def last_before(self, until: datetime, count: int) -> list[Window]:
        """Return the last windows that end at or before an instant."""
        stop = bisect_right(self._ends, until)
        return list(self._windows[max(0, stop - count) : stop])

    def overlapping(self, window: Window) -> list[Window]:
        """Return the windows that share time with another one."""
        first = bisect_right(self._ends, window.start)
        return list(self._windows[first : bisect_left(self._starts, window.end)])

    def window(self, start: datetime) -> Window | None:
        """Return the window that starts at an instant, if there is one."""
        place = bisect_left(self._starts, start)
        if place < len(self._starts) and self._starts[place] == start:
            return self._windows[place]
        return None

    def needed_window(self, start: datetime, upstream: str) -> Window | None:
        """Return the time of which the window that starts then needs an upstream asset: its own, or
        the time of all windows that an offset names, counted in windows of the cadence.
        """
        own, offset = self.window(start), self._offset(upstream)
        if own is None or offset is None:
            return own
        every = windows(str(self.declared.cadence), self.declared.zone)
        number = bisect_left(every, own)
        return Window(every[number + offset[0]].start, every[number + offset[1]].end)

    def reach(self, window: Window, upstream: str) -> Window:
        """Return a time in which all windows lie that may need an upstream window."""
        offset = self._offset(upstream)
        if offset is None:
            return window
        longest = timedelta(days=32)
        return Window(window.start - offset[1] * longest, window.end - offset[0] * longest)

    def _offset(self, upstream: str) -> tuple[int, int] | None:
        schedule = self.declared.schedule
        if schedule is None or schedule.offset is None or schedule.offset[0] != upstream:
            return None
        return schedule.offset[1:]

    def lies_before(self, window: Window) -> bool:
        """Return whether part of a window lies before the asset's first window."""
        return not self._starts or window.start < self._starts[0]


def needed(
    down: Partitioning, partition: Partition, up: Partitioning
) -> tuple[list[Partition], bool]:
    """Return the upstream partitions that one partition needs, and whether all of these exist."""
    start, segment = partition
    if down.is_whole:
        return [], True
    segments = [segment] if _pairs(down, up) else list(up.segments)
    if not up.has_time:
        exist = set(segments) <= set(up.segments)
        return [(None, chosen) for chosen in segments], exist
    if not down.has_time or start is None:
        raise AssertionError("no asset of the simulation is partitioned by time upstream alone")
    window = down.needed_window(start, up.declared.name)
    if window is None:
        return [], False
    spans = up.overlapping(window)
    wanted: list[Partition] = [(span.start, chosen) for span in spans for chosen in segments]
    return wanted, bool(wanted) and not up.lies_before(window)


def needing(up: Partitioning, partition: Partition, down: Partitioning) -> list[Partition]:
    """Return the downstream partitions that need one upstream partition; both assets are
    partitioned by time, or neither is.
    """
    start, segment = partition
    if down.is_whole:
        return [WHOLE]
    segments = [segment] if _pairs(down, up) else list(down.segments)
    if not down.has_time:
        return [(None, chosen) for chosen in segments if chosen in down.segments]
    window = None if start is None else up.window(start)
    if window is None:
        return []
    return [
        (span.start, chosen)
        for span in down.overlapping(down.reach(window, up.declared.name))
        if _overlap(window, down.needed_window(span.start, up.declared.name))
        for chosen in segments
    ]


def _overlap(window: Window, other: Window | None) -> bool:
    return other is not None and window.start < other.end and other.start < window.end


def _pairs(down: Partitioning, up: Partitioning) -> bool:
    """Return whether segments of both assets are of one dimension."""
    if down.declared.is_runtime or up.declared.is_runtime:
        return down.declared.is_runtime and up.declared.is_runtime
    return bool(down.declared.segments) and bool(up.declared.segments)

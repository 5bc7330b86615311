"""Partitions of two definitions that belong together: windows overlap, segments are equal."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product

from slicewise.intervals import Interval, make_interval
from slicewise.keys import SEPARATOR
from slicewise.overlap import Ranges, overlapping
from slicewise.partition_set import Nonexistent, PartitionSet
from slicewise.slabs import NO_SEGMENTS, SegmentNumbers, Slab
from slicewise.snapshots import Definition, is_runtime, with_keys
from slicewise.space import WHOLE_SPACE, Space
from slicewise.windows import Bound, Windows
from slicewise.zones import BEGIN, END

Span = tuple[int, int]
Bounds = tuple[Bound, Bound]
WindowRule = Callable[[Windows, Ranges, Windows], Iterable[Span]]
"""Which windows of the last belong to ranges of windows of the first, by number, in order.

The ranges hold no excluded window; bounds and exclusions of the last are not to be looked at.
"""


def related(
    source: Definition,
    target: Definition,
    chosen: PartitionSet,
    bounds: Bounds = (None, None),
    rule: WindowRule = overlapping,
) -> PartitionSet:
    """The target's partitions that belong to some of the source's.

    Windows belong together by the `rule`, segments where they are equal, and a dimension that only
    one side has is taken whole. `bounds` stand in for a time dimension that only the target has and
    that has no ends.
    """
    if target == source:
        target = with_keys(target, chosen)
    space = WHOLE_SPACE if target is None else target.space
    mapped = matching_segments(source, target, chosen.space)
    everything = _all_windows(space, chosen.space, bounds)
    slabs: list[Slab] = []
    absent: list[Span] = []
    lost: dict[str, None] = {}
    for segments, ranges in _by_segments(chosen.slabs):
        counterparts, missing = mapped(segments)
        lost.update(dict.fromkeys(missing))
        for numbers in everything or _by_rule(rule, chosen.space.time, ranges, space.time):
            found = space.windows.clip(*numbers) if space.windows else numbers
            slabs.append(Slab(*found, counterparts))
            absent += _missing(space.windows, numbers, found) if space.windows else ()
    return PartitionSet(target, slabs, Nonexistent(tuple(_merged(absent, space)), tuple(lost)))


def _all_windows(target: Space, source: Space, bounds: Bounds) -> list[Span]:
    """All windows of the target where the source has no time to tell which; else nothing."""
    if target.windows is None:
        return [(0, 1)]
    return [target.between(*bounds)] if source.windows is None else []


def _by_segments(slabs: Sequence[Slab]) -> Iterable[tuple[SegmentNumbers, Ranges]]:
    """Ranges of windows that have the same segments, as two columns: firsts and stops."""
    if not slabs:
        return ()
    firsts, stops, segments = zip(*slabs, strict=True)
    if len(set(segments)) == 1:
        return [(segments[0], (firsts, stops))]
    groups: dict[SegmentNumbers, tuple[list[int], list[int]]] = {}
    for first, stop, each in slabs:
        columns = groups.setdefault(each, ([], []))
        columns[0].append(first)
        columns[1].append(stop)
    return groups.items()


def _by_rule(rule: WindowRule, source: Windows, ranges: Ranges, target: Windows) -> Iterable[Span]:
    if source.has_exclusions:
        runs = [run for span in zip(*ranges, strict=True) for run in source.runs(*span)]
        ranges = [first for first, _ in runs], [stop for _, stop in runs]
    return rule(source, ranges, target) if ranges[0] else ()


def _missing(windows: Windows, wanted: Span, found: Span) -> Iterator[Span]:
    """Numbers of wanted windows that are out of bounds or excluded."""
    if found[0] >= found[1]:
        yield wanted
        return
    yield wanted[0], found[0]
    yield found[1], wanted[1]
    yield from ((number, number + 1) for number in windows.excluded(*found))


def _merged(spans: Iterable[Span], target: Space) -> Iterator[Interval]:
    """Ranges of window numbers as spans of time, in order and merged."""
    merged: list[Span] = []
    for first, stop in sorted(span for span in spans if span[0] < span[1]):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((first, stop))
    for first, stop in merged:
        ticks = target.time.ticks
        # An offset may reach beyond Python's calendar, where there is nothing to speak of.
        start, end = max(BEGIN, ticks.tick(first)), min(END, ticks.tick(stop))
        if start < end:
            yield make_interval(start, end, target.time.zone)


MapSegments = Callable[[SegmentNumbers], tuple[SegmentNumbers, tuple[str, ...]]]


def matching_segments(source: Definition, target: Definition, space: Space) -> MapSegments:
    """How segments of the source's space become the target's, and what has no counterpart."""
    wanted = WHOLE_SPACE if target is None else target.space
    pairs = _paired(source, target, space.segment_names, wanted.segment_names)
    mine, theirs = space.segments, wanted.segments
    whole = [range(len(each)) for each in theirs.lists]

    @lru_cache(maxsize=256)
    def mapped(segments: SegmentNumbers) -> tuple[SegmentNumbers, tuple[str, ...]]:
        if not pairs:
            return theirs.all if segments else NO_SEGMENTS, ()
        shares = {
            tuple(places[place] for place, _ in pairs) for places in map(mine.places, segments)
        }
        found: set[int] = set()
        missing: list[str] = []
        for share in sorted(shares):
            axes: list[Iterable[int]] = list(whole)
            keys = [mine.lists[of].keys[place] for place, (of, _) in zip(share, pairs, strict=True)]
            for key, (_, of) in zip(keys, pairs, strict=True):
                place = theirs.lists[of].place(key)
                axes[of] = () if place is None else (place,)
            numbers = [theirs.number(places) for places in product(*axes)]
            found.update(numbers)
            missing += [] if numbers else [SEPARATOR.join(key.text for key in keys)]
        return frozenset(found), tuple(missing)

    return mapped


def _paired(
    source: Definition, target: Definition, mine: tuple[str, ...], theirs: tuple[str, ...]
) -> list[tuple[int, int]]:
    """Dimensions that speak of the same: those of one name, else the only one of each side.

    Sets found at run time are the same by their own name, and never the same as a list.
    """
    if is_runtime(source) or is_runtime(target):
        return [(0, 0)] if source == target else []
    pairs = [(mine.index(name), theirs.index(name)) for name in mine if name in theirs]
    left = [place for place, name in enumerate(mine) if name not in theirs]
    right = [place for place, name in enumerate(theirs) if name not in mine]
    return [*pairs, (left[0], right[0])] if len(left) == len(right) == 1 else pairs

"""Partitions of two definitions that belong together: windows overlap, segments are equal."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import product
from math import prod

from slicewise.definitions import DEFAULT_NAME, DEFAULT_SEGMENT, PartitionDefinition
from slicewise.keys import SEPARATOR
from slicewise.nonexistent import Lost, Reach, reach_of
from slicewise.overlap import Ranges, overlapping
from slicewise.partition_set import PartitionSet
from slicewise.slabs import NO_SEGMENTS, SegmentNumbers, Slab
from slicewise.snapshots import Definition, is_runtime, with_keys
from slicewise.space import WHOLE_SPACE, Space
from slicewise.windows import Bound, Windows

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
    *,
    ignores_outside: bool = False,
) -> PartitionSet:
    """Return the target's partitions that belong to some of the source's.

    Windows belong together by the `rule`, segments where they are equal, and a dimension that only
    one side has is taken whole. `bounds` stand in for a time dimension that only the target has and
    that has no ends. With `ignores_outside` windows outside the target's bounds block nothing.
    """
    if target == source:
        target = with_keys(target, chosen)
    space = WHOLE_SPACE if target is None else target.space
    mapped = matching_segments(source, target, chosen.space)
    everything = _all_windows(space, chosen.space, bounds)
    slabs: list[Slab] = []
    reached: list[Slab] = []
    lost: dict[str, int] = {}
    for segments, ranges in _by_segments(chosen.slabs):
        counterparts, missing = mapped(segments)
        numbered = counterparts | {
            lost.setdefault(text, space.segments.count + len(lost)) for text in missing
        }
        for numbers in everything or _by_rule(rule, chosen.space.time, ranges, space.time):
            found = space.windows.clip(*numbers) if space.windows else numbers
            slabs.append(Slab(*found, counterparts))
            if missing or _may_lack(space.windows, numbers, found):
                reached.append(Slab(*numbers, numbered))
    reach = Reach()
    if reached:
        width = _width(source, target, chosen.space, space)
        reach = reach_of(space, reached, Lost(tuple(lost), width), ignores_outside)
    return PartitionSet(target, slabs, *reach)


def _may_lack(windows: Windows | None, wanted: Span, found: Span) -> bool:
    """Whether some wanted windows are out of bounds or may be excluded."""
    return windows is not None and (wanted != found or windows.has_exclusions)


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


def paired_segments(source: PartitionDefinition, target: PartitionDefinition) -> list[Span]:
    """Return the places of dimensions of segments that pair, of the source and of the target."""
    names = source.space.segment_names, target.space.segment_names
    return _paired(source, target, *names)


def _width(source: Definition, target: Definition, mine: Space, theirs: Space) -> int:
    """How many of the target's segments a source's one without counterpart stands for."""
    pairs = _paired(source, target, mine.segment_names, theirs.segment_names)
    used = {place for _, place in pairs}
    return prod(len(each) for place, each in enumerate(theirs.segments.lists) if place not in used)


def _paired(
    source: Definition, target: Definition, mine: tuple[str, ...], theirs: tuple[str, ...]
) -> list[tuple[int, int]]:
    """Dimensions that speak of the same: those of one name, and what nobody has named.

    Sets found at run time are the same by their own name, and never the same as a list.
    """
    if is_runtime(source) or is_runtime(target):
        return [(0, 0)] if source == target else []
    names = {name: name for name in mine}
    # The names that a definition gives where nobody did: by itself, and in the list of a product.
    for alone, listed in ((mine, theirs), (theirs, mine)):
        if alone == (DEFAULT_NAME,) and DEFAULT_NAME not in listed and DEFAULT_SEGMENT in listed:
            names |= {DEFAULT_NAME: DEFAULT_SEGMENT, DEFAULT_SEGMENT: DEFAULT_NAME}
    found = [(place, names[name]) for place, name in enumerate(mine)]
    return [(place, theirs.index(name)) for place, name in found if name in theirs]

"""Partitions of two definitions that belong together: windows overlap, segments are equal."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product

from slicewise.definitions import PartitionDefinition
from slicewise.intervals import Interval, make_interval
from slicewise.keys import SEPARATOR
from slicewise.overlap import Ranges, overlapping
from slicewise.partition_set import Nonexistent, PartitionSet, Segments, Slab
from slicewise.space import WHOLE_SPACE, Space
from slicewise.windows import Bound, Windows

Definition = PartitionDefinition | None
Span = tuple[int, int]
Bounds = tuple[Bound, Bound]
Shift = tuple[int, int]


def related(
    source: Definition,
    target: Definition,
    chosen: PartitionSet,
    bounds: Bounds = (None, None),
    *,
    widen: Shift = (0, 0),
    shift: Shift = (0, 0),
) -> PartitionSet:
    """The target's partitions that belong to some of the source's.

    `bounds` stand in for a time dimension that only the target has and that has no ends. Ranges of
    the source's windows are moved by `widen` (first and last one) before they are looked at, those
    of the target by `shift` after.
    """
    space = WHOLE_SPACE if target is None else target.space
    mapped = _segment_mapping(chosen.space, space)
    everything = _all_windows(space, chosen.space, bounds)
    slabs: list[Slab] = []
    absent: list[Span] = []
    lost: dict[str, None] = {}
    for segments, ranges in _by_segments(chosen.slabs):
        counterparts, missing = mapped(segments)
        lost.update(dict.fromkeys(missing))
        for numbers in everything or _overlapping(chosen.space, ranges, widen, space, shift):
            found = space.windows.clip(*numbers) if space.windows else numbers
            slabs.append(Slab(*found, counterparts))
            absent += _missing(space.windows, numbers, found) if space.windows else ()
    return PartitionSet(target, slabs, Nonexistent(tuple(_merged(absent, space)), tuple(lost)))


def _all_windows(target: Space, source: Space, bounds: Bounds) -> list[Span]:
    """All windows of the target where the source has no time to tell which; else nothing."""
    if target.windows is None:
        return [(0, 1)]
    return [target.between(*bounds)] if source.windows is None else []


def _by_segments(slabs: Sequence[Slab]) -> Iterable[tuple[Segments, Ranges]]:
    """Ranges of windows that have the same segments, as two columns: firsts and stops."""
    if not slabs:
        return ()
    firsts, stops, segments = zip(*slabs, strict=True)
    if len(set(segments)) == 1:
        return [(segments[0], (firsts, stops))]
    groups: dict[Segments, tuple[list[int], list[int]]] = {}
    for first, stop, each in slabs:
        columns = groups.setdefault(each, ([], []))
        columns[0].append(first)
        columns[1].append(stop)
    return groups.items()


def _overlapping(
    source: Space, ranges: Ranges, widen: Shift, target: Space, shift: Shift
) -> list[Span]:
    found = overlapping(source.time, ranges, widen, target.time)
    return [(first + shift[0], stop + shift[1]) for first, stop in found]


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
        yield make_interval(ticks.tick(first), ticks.tick(stop), target.time.zone)


MapSegments = Callable[[Segments], tuple[Segments, tuple[str, ...]]]


def _segment_mapping(source: Space, target: Space) -> MapSegments:
    """How segments of one space become those of another, and which texts have no counterpart."""
    pairs = _paired(source.segment_names, target.segment_names)
    lists = source.segments.lists, target.segments.lists
    whole = [range(len(each)) for each in lists[1]]

    @lru_cache(maxsize=256)
    def mapped(segments: Segments) -> tuple[Segments, tuple[str, ...]]:
        if not pairs:
            return target.segments.all, ()
        shares = {
            tuple(places[mine] for mine, _ in pairs)
            for places in map(source.segments.places, segments)
        }
        found: set[int] = set()
        missing: list[str] = []
        for share in sorted(shares):
            texts = [
                lists[0][mine].texts[place] for place, (mine, _) in zip(share, pairs, strict=True)
            ]
            axes: list[Iterable[int]] = list(whole)
            for text, (_, theirs) in zip(texts, pairs, strict=True):
                place = lists[1][theirs].places.get(text)
                axes[theirs] = () if place is None else (place,)
            numbers = [target.segments.number(places) for places in product(*axes)]
            found.update(numbers)
            missing += [] if numbers else [SEPARATOR.join(texts)]
        return frozenset(found), tuple(missing)

    return mapped


def _paired(source: tuple[str, ...], target: tuple[str, ...]) -> list[tuple[int, int]]:
    """Dimensions that speak of the same: those of one name, else the only one of each side."""
    pairs = [(source.index(name), target.index(name)) for name in source if name in target]
    mine = [place for place, name in enumerate(source) if name not in target]
    theirs = [place for place, name in enumerate(target) if name not in source]
    return [*pairs, (mine[0], theirs[0])] if len(mine) == len(theirs) == 1 else pairs

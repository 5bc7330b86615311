"""Writing a set of partitions as a selection."""

from collections.abc import Iterable, Iterator, Sequence

from slicewise.partition_set import PartitionSet
from slicewise.segments import SegmentList
from slicewise.slabs import SegmentNumbers
from slicewise.snapshots import is_runtime
from slicewise.space import Space

Places = tuple[int, ...]
Box = tuple[Places, ...]


def selection_text(partitions: PartitionSet) -> str:
    """Return the shortest text of ranges and lists that `select` reads as this set.

    Windows with equal segments share one part; parts are joined by `; `. Keys found at run time
    are listed one by one.
    """
    space = partitions.space
    # What a pattern or range names would change with the keys that runs find.
    one_by_one = is_runtime(partitions.definition)
    groups: dict[SegmentNumbers, list[tuple[int, int]]] = {}
    for slab in partitions.slabs:
        groups.setdefault(slab.segments, []).append((slab.first, slab.stop))
    return "; ".join(
        _part(space, numbers, box, one_by_one)
        for segments, numbers in groups.items()
        for box in _boxes({space.segments.places(segment) for segment in segments})
    )


def _part(space: Space, numbers: list[tuple[int, int]], box: Box, one_by_one: bool) -> str:
    texts = [
        _list_text(each, places, one_by_one)
        for each, places in zip(space.segments.lists, box, strict=True)
    ]
    if space.windows is not None:
        texts.insert(space.names.index(space.time_name or ""), _times_text(space, numbers))
    if len(space.names) < 2:
        return "".join(texts)
    return " ".join(f"{name}={text}" for name, text in zip(space.names, texts, strict=True))


def _times_text(space: Space, numbers: Iterable[tuple[int, int]]) -> str:
    return ",".join(
        space.window_text(first)
        if first + 1 == stop
        else f"{space.window_text(first)}..{space.window_text(stop - 1)}"
        for first, stop in numbers
    )


def _list_text(segments: SegmentList, places: Places, one_by_one: bool) -> str:
    if one_by_one:
        return ",".join(segments.texts[place] for place in places)
    if len(places) == len(segments) > 1:
        return "*"
    texts: list[str] = []
    for run in _runs(places):
        listed = [segments.texts[place] for place in run]
        texts += listed if len(run) < 3 else [f"{listed[0]}..{listed[-1]}"]
    return ",".join(texts)


def _runs(places: Sequence[int]) -> Iterator[Sequence[int]]:
    """Ascending numbers as unbroken runs."""
    start = 0
    for end in range(1, len(places) + 1):
        if end == len(places) or places[end] != places[end - 1] + 1:
            yield places[start:end]
            start = end


def _boxes(combinations: set[Places]) -> list[Box]:
    """Combinations as boxes: in each, any place of one dimension goes with any of the others."""
    if combinations == {()}:
        return [()]
    rests: dict[int, set[Places]] = {}
    for place, *rest in sorted(combinations):
        rests.setdefault(place, set()).add(tuple(rest))
    firsts: dict[frozenset[Places], list[int]] = {}
    for place, rest_set in rests.items():
        firsts.setdefault(frozenset(rest_set), []).append(place)
    return [(tuple(places), *box) for rest, places in firsts.items() for box in _boxes(set(rest))]

"""Selections of sets of partitions as text."""

from collections.abc import Iterable, Iterator, Sequence

from slicewise.partitions.key_index import KeyIndex
from slicewise.partitions.segments import SegmentList
from slicewise.partitions.window_ranges import SegmentNumbers, WindowRange

Positions = tuple[int, ...]
Box = tuple[Positions, ...]


def selection_text(
    space: KeyIndex, window_ranges: Iterable[WindowRange], *, key_by_key: bool
) -> str:
    """Return the shortest text of ranges and lists that `select` reads as these window ranges.

    Windows with equal segments share one term; terms are joined by `; `. With `key_by_key`, as for
    runtime keys, segments are listed one by one: the meaning of a pattern or range would change
    with the keys that runs discover.
    """
    groups: dict[SegmentNumbers, list[tuple[int, int]]] = {}
    for window_range in window_ranges:
        groups.setdefault(window_range.segments, []).append((window_range.first, window_range.stop))
    return "; ".join(
        _term_text(space, numbers, box, key_by_key)
        for segments, numbers in groups.items()
        for box in _boxes({space.segments.positions(segment) for segment in segments})
    )


def _term_text(space: KeyIndex, numbers: list[tuple[int, int]], box: Box, key_by_key: bool) -> str:
    texts = [
        _list_text(sequence, positions, key_by_key)
        for sequence, positions in zip(space.segments.lists, box, strict=True)
    ]
    if space.windows is not None:
        texts.insert(space.names.index(space.time_name or ""), _times_text(space, numbers))
    if len(space.names) < 2:
        return "".join(texts)
    return " ".join(f"{name}={text}" for name, text in zip(space.names, texts, strict=True))


def _times_text(space: KeyIndex, numbers: Iterable[tuple[int, int]]) -> str:
    return ",".join(
        space.window_text(first)
        if first + 1 == stop
        else f"{space.window_text(first)}..{space.window_text(stop - 1)}"
        for first, stop in numbers
    )


def _list_text(segments: SegmentList, positions: Positions, key_by_key: bool) -> str:
    if key_by_key:
        return ",".join(segments.texts[position] for position in positions)
    if len(positions) == len(segments) > 1:
        return "*"
    texts: list[str] = []
    for run in _runs(positions):
        listed = [segments.texts[position] for position in run]
        texts += listed if len(run) < 3 else [f"{listed[0]}..{listed[-1]}"]
    return ",".join(texts)


def _runs(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield unbroken runs of ascending numbers."""
    start = 0
    for end in range(1, len(numbers) + 1):
        if end == len(numbers) or numbers[end] != numbers[end - 1] + 1:
            yield numbers[start:end]
            start = end


def _boxes(combinations: set[Positions]) -> list[Box]:
    """Return combinations as boxes, in which each position of a dimension pairs with all others."""
    if combinations == {()}:
        return [()]
    rests: dict[int, set[Positions]] = {}
    for position, *rest in sorted(combinations):
        rests.setdefault(position, set()).add(tuple(rest))
    firsts: dict[frozenset[Positions], list[int]] = {}
    for position, rest_set in rests.items():
        firsts.setdefault(frozenset(rest_set), []).append(position)
    return [
        (tuple(positions), *box) for rest, positions in firsts.items() for box in _boxes(set(rest))
    ]

"""Related partitions of two definitions: windows overlap, segments are equal."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import product
from math import prod

from slicewise.keys.product_key import SEPARATOR
from slicewise.mapping.overlap import Ranges, overlapping
from slicewise.partitions.definition import (
    DEFAULT_NAME,
    DEFAULT_SEGMENT,
    PartitionDefinition,
    PartitionSet,
)
from slicewise.partitions.key_index import WHOLE_SPACE, KeyIndex
from slicewise.partitions.nonexistent import Lost, Reach, reach_of
from slicewise.partitions.runtime_keys import Definition, is_runtime, with_keys
from slicewise.partitions.window_ranges import NO_SEGMENTS, SegmentNumbers, WindowRange
from slicewise.partitions.windows import Bound, Windows

Span = tuple[int, int]
Bounds = tuple[Bound, Bound]
WindowRule = Callable[[Windows, Ranges, Windows], Iterable[Span]]
"""A function that returns the target's windows, by number and in order, for source ranges.

The ranges hold no excluded window; a rule must ignore bounds and exclusions of the target.
"""


def related_partitions(
    source: Definition,
    target: Definition,
    chosen: PartitionSet,
    bounds: Bounds = (None, None),
    rule: WindowRule = overlapping,
    *,
    ignores_outside: bool = False,
) -> PartitionSet:
    """Return the target's partitions that are related to some chosen partitions of the source.

    Windows are related by the `rule`, and segments if equal; of a dimension that only one side has,
    all keys are related. `bounds` narrow the windows of a time dimension that only the target
    has. With `ignores_outside`, windows outside the target's bounds block nothing.
    """
    if target == source:
        target = with_keys(target, chosen)
    space = WHOLE_SPACE if target is None else target.space
    mapped = matching_segments(source, target, chosen.space)
    all_windows = _all_windows(space, chosen.space, bounds)
    window_ranges: list[WindowRange] = []
    reached: list[WindowRange] = []
    lost: dict[str, int] = {}
    for segments, ranges in _by_segments(chosen.window_ranges):
        counterparts, missing = mapped(segments)
        numbered = counterparts | {
            lost.setdefault(text, space.segments.count + len(lost)) for text in missing
        }
        for numbers in all_windows or _by_rule(rule, chosen.space.time, ranges, space.time):
            existing_range = space.windows.clip(*numbers) if space.windows else numbers
            window_ranges.append(WindowRange(*existing_range, counterparts))
            if missing or _may_be_missing(space.windows, numbers, existing_range):
                reached.append(WindowRange(*numbers, numbered))
    reach = Reach()
    if reached:
        width = _width(source, target, chosen.space, space)
        reach = reach_of(space, reached, Lost(tuple(lost), width), ignores_outside)
    return PartitionSet(target, window_ranges, *reach)


def _may_be_missing(windows: Windows | None, wanted: Span, existing: Span) -> bool:
    """Return whether some wanted windows are out of bounds or may be excluded."""
    return windows is not None and (wanted != existing or windows.has_exclusions)


def _all_windows(target: KeyIndex, source: KeyIndex, bounds: Bounds) -> list[Span]:
    """Return all windows of the target if the source has no time dimension; else an empty list."""
    if target.windows is None:
        return [(0, 1)]
    return [target.between(*bounds)] if source.windows is None else []


def _by_segments(window_ranges: Sequence[WindowRange]) -> Iterable[tuple[SegmentNumbers, Ranges]]:
    """Return ranges of windows with equal segments, as two columns: first and stop numbers."""
    if not window_ranges:
        return ()
    firsts, stops, segments = zip(*window_ranges, strict=True)
    if len(set(segments)) == 1:
        return [(segments[0], (firsts, stops))]
    groups: dict[SegmentNumbers, tuple[list[int], list[int]]] = {}
    for first, stop, segment_numbers in window_ranges:
        columns = groups.setdefault(segment_numbers, ([], []))
        columns[0].append(first)
        columns[1].append(stop)
    return groups.items()


def _by_rule(
    window_rule: WindowRule, source: Windows, ranges: Ranges, target: Windows
) -> Iterable[Span]:
    if source.has_exclusions:
        runs = [run for span in zip(*ranges, strict=True) for run in source.runs(*span)]
        ranges = [first for first, _ in runs], [stop for _, stop in runs]
    return window_rule(source, ranges, target) if ranges[0] else ()


MapSegments = Callable[[SegmentNumbers], tuple[SegmentNumbers, tuple[str, ...]]]


def matching_segments(source: Definition, target: Definition, space: KeyIndex) -> MapSegments:
    """Return a function from source segments to (target segments, texts without counterpart)."""
    target_space = WHOLE_SPACE if target is None else target.space
    pairs = _paired(source, target, space.segment_names, target_space.segment_names)
    source_segments, target_segments = space.segments, target_space.segments
    all_positions = [range(len(sequence)) for sequence in target_segments.lists]

    @lru_cache(maxsize=256)
    def mapped(segments: SegmentNumbers) -> tuple[SegmentNumbers, tuple[str, ...]]:
        if not pairs:
            return target_segments.all if segments else NO_SEGMENTS, ()
        paired_positions = {
            tuple(positions[position] for position, _ in pairs)
            for positions in map(source_segments.positions, segments)
        }
        target_numbers: set[int] = set()
        missing: list[str] = []
        for source_positions in sorted(paired_positions):
            axes: list[Iterable[int]] = list(all_positions)
            keys = [
                source_segments.lists[dimension].keys[position]
                for position, (dimension, _) in zip(source_positions, pairs, strict=True)
            ]
            for key, (_, dimension) in zip(keys, pairs, strict=True):
                position = target_segments.lists[dimension].position(key)
                axes[dimension] = () if position is None else (position,)
            numbers = [target_segments.number(positions) for positions in product(*axes)]
            target_numbers.update(numbers)
            missing += [] if numbers else [SEPARATOR.join(key.text for key in keys)]
        return frozenset(target_numbers), tuple(missing)

    return mapped


def paired_segments(source: PartitionDefinition, target: PartitionDefinition) -> list[Span]:
    """Return the positions of the segment dimensions that pair, in the source and in the target."""
    names = source.space.segment_names, target.space.segment_names
    return _paired(source, target, *names)


def _width(
    source: Definition, target: Definition, source_space: KeyIndex, target_space: KeyIndex
) -> int:
    """Return how many target segments one source segment without counterpart stands for."""
    pairs = _paired(source, target, source_space.segment_names, target_space.segment_names)
    paired_positions = {position for _, position in pairs}
    return prod(
        len(sequence)
        for position, sequence in enumerate(target_space.segments.lists)
        if position not in paired_positions
    )


def _paired(
    source: Definition,
    target: Definition,
    source_names: tuple[str, ...],
    target_names: tuple[str, ...],
) -> list[tuple[int, int]]:
    """Return the positions of dimensions that pair: equal names, and default names.

    Runtime partitions pair only with runtime partitions of the same name, never with a list.
    """
    if is_runtime(source) or is_runtime(target):
        return [(0, 0)] if source == target else []
    names = {name: name for name in source_names}
    # The default names of an unnamed dimension: of a definition alone, and within a product.
    for alone, listed in ((source_names, target_names), (target_names, source_names)):
        if alone == (DEFAULT_NAME,) and DEFAULT_NAME not in listed and DEFAULT_SEGMENT in listed:
            names |= {DEFAULT_NAME: DEFAULT_SEGMENT, DEFAULT_SEGMENT: DEFAULT_NAME}
    named_positions = [(position, names[name]) for position, name in enumerate(source_names)]
    return [
        (position, target_names.index(name))
        for position, name in named_positions
        if name in target_names
    ]

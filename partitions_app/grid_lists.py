"""Keys without time: segments in their order, or the one cell of what is not partitioned."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import prod
from urllib.parse import quote

from partitions_app.grid_cells import Block, Cell, Row, SliceFact
from partitions_app.labels import label_of
from partitions_app.looks import MISSING, STALE, Look, look_of_partition
from slicewise import PartitionAtRuntime, PartitionDefinition, PartitionKey

SEPARATOR = "|"


def segment_count(definition: PartitionDefinition) -> int:
    """Count the combinations of segments; 1 without dimensions of segments."""
    return prod(len(each.definition.keys()) for each in definition.segment_dimensions)


def segments(definition: PartitionDefinition, first: int, stop: int) -> list[str]:
    """Return the texts of the combinations of segments with these numbers, in order."""
    lists = [each.definition.keys() for each in definition.segment_dimensions]
    if not lists:
        return []
    return [_combination(lists, n) for n in range(first, min(stop, segment_count(definition)))]


def _combination(lists: Sequence[Sequence[PartitionKey]], number: int) -> str:
    parts = []
    for keys in reversed(lists):
        number, place = divmod(number, len(keys))
        parts.append(keys[place].text)
    return SEPARATOR.join(reversed(parts))


def key_texts(
    definition: PartitionDefinition, window: str, segments: Sequence[str]
) -> Iterator[str]:
    """Return the key text of a window with each of the segments: dimensions in order, joined."""
    names, time = definition.space.names, definition.space.time_name
    place = names.index(time) if time else 0
    for segment in segments:
        parts = segment.split(SEPARATOR) if segment else []
        yield SEPARATOR.join((*parts[:place], window, *parts[place:]))


def longest_segment(definition: PartitionDefinition) -> str:
    """Return a text as long as the longest combination of segments, to leave room for it."""
    if isinstance(definition, PartitionAtRuntime):  # equal ones may know other keys
        return _longest_segment(definition)
    return _remembered_longest_segment(definition)


def _longest_segment(definition: PartitionDefinition) -> str:
    lists = [each.definition.keys() for each in definition.segment_dimensions]
    longest = [
        max((key.text for key in keys), key=lambda text: len(quote(text)), default="")
        for keys in lists
    ]
    return SEPARATOR.join(longest)


_remembered_longest_segment = lru_cache(maxsize=256)(_longest_segment)


def segment_label(definition: PartitionDefinition, segment: str) -> str:
    """Return the labels of a combination of segments."""
    rules = [dimension.definition for dimension in definition.segment_dimensions]
    texts = segment.split(SEPARATOR)
    return " | ".join(label_of(rule, text) for rule, text in zip(rules, texts, strict=True))


def blocks(
    definition: PartitionDefinition | None, keys: Sequence[str], slices: Mapping[str, SliceFact]
) -> list[Block]:
    """Return blocks of cells for all keys, one after the other."""
    named = [(key, label_of(definition, key)) for key in keys]
    cells = [
        Cell(look_in(slices, key), key, label, label or "unpartitioned", because_in(slices, key))
        for key, label in named
    ]
    return [Block("", [Row(cells)])] if cells else []


def look_in(slices: Mapping[str, SliceFact], key: str) -> Look:
    """Return the look of a partition, which may have no row."""
    fact = slices.get(key)
    if fact is None:
        return MISSING
    return look_of_partition(fact.state, fact.run_state, is_stale=fact.is_stale)


def because_in(slices: Mapping[str, SliceFact], key: str) -> str:
    """Return the reason why a partition looks stale, where the reason is known; else an empty
    text.
    """
    fact = slices.get(key)
    return fact.because if fact is not None and look_in(slices, key) is STALE else ""

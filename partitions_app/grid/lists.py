"""Cells of keys without time: segments in order, or the one cell of an unpartitioned asset."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from urllib.parse import quote

from partitions_app.grid.cells import Block, Cell, PartitionFact, Row
from partitions_app.labels import label_of
from partitions_app.state_badges import MISSING, STALE, StateBadge, badge_of_partition
from slicewise import PartitionAtRuntime, PartitionDefinition, PartitionKey

SEPARATOR = "|"


def segment_count(definition: PartitionDefinition) -> int:
    """Count the combinations of segments; 1 without dimensions of segments."""
    return prod(len(dimension.definition.keys()) for dimension in definition.segment_dimensions)


def segments(definition: PartitionDefinition, first: int, stop: int) -> list[str]:
    """Return the texts of combinations of segments ``[first, stop)``, in order."""
    key_lists = [dimension.definition.keys() for dimension in definition.segment_dimensions]
    if not key_lists:
        return []
    return [_combination(key_lists, n) for n in range(first, min(stop, segment_count(definition)))]


def _combination(key_lists: Sequence[Sequence[PartitionKey]], number: int) -> str:
    texts = []
    for keys in reversed(key_lists):
        number, index = divmod(number, len(keys))
        texts.append(keys[index].text)
    return SEPARATOR.join(reversed(texts))


def key_texts(
    definition: PartitionDefinition, window: str, segments: Sequence[str]
) -> Iterator[str]:
    """Yield the key text of a window with each of the segments: dimensions in order, joined."""
    names, time = definition.space.names, definition.space.time_name
    time_index = names.index(time) if time else 0
    for segment in segments:
        components = segment.split(SEPARATOR) if segment else []
        yield SEPARATOR.join((*components[:time_index], window, *components[time_index:]))


def longest_segment(definition: PartitionDefinition) -> str:
    """Return a text as long as the longest combination of segments, to reserve room on the page."""
    if isinstance(definition, PartitionAtRuntime):  # equal definitions may have other keys
        return _longest_segment(definition)
    return _remembered_longest_segment(definition)


def _longest_segment(definition: PartitionDefinition) -> str:
    key_lists = [dimension.definition.keys() for dimension in definition.segment_dimensions]
    longest = [
        max((key.text for key in keys), key=lambda text: len(quote(text)), default="")
        for keys in key_lists
    ]
    return SEPARATOR.join(longest)


_remembered_longest_segment = lru_cache(maxsize=256)(_longest_segment)


def segment_label(definition: PartitionDefinition, segment: str) -> str:
    """Return the labels of a combination of segments."""
    definitions = [dimension.definition for dimension in definition.segment_dimensions]
    texts = segment.split(SEPARATOR)
    return " | ".join(
        label_of(segment_definition, text)
        for segment_definition, text in zip(definitions, texts, strict=True)
    )


def blocks(keys: Sequence[str], cell_of: Callable[[str], Cell | None]) -> list[Block]:
    """Return blocks of cells for the keys that have a cell, in order."""
    return list_of(cell for key in keys if (cell := cell_of(key)) is not None)


def list_of(cells: Iterable[Cell]) -> list[Block]:
    """Return blocks of given cells, in order, with their names inside."""
    named_cells = [replace(cell, inside=cell.label or "Unpartitioned") for cell in cells]
    return [Block("", [Row(named_cells)])] if named_cells else []


def look_in(partitions: Mapping[str, PartitionFact], key: str) -> StateBadge:
    """Return the look of a partition, which may have no row."""
    fact = partitions.get(key)
    if fact is None:
        return MISSING
    return badge_of_partition(
        fact.state, fact.run_state, is_stale=fact.is_stale, lateness=fact.lateness
    )


def because_in(partitions: Mapping[str, PartitionFact], key: str) -> str:
    """Return the reason why a partition is stale, or that a failed one is overdue; an empty text
    without a known reason.
    """
    fact = partitions.get(key)
    if fact is None:
        return ""
    look = look_in(partitions, key)
    if fact.lateness and look.name != fact.lateness:
        return fact.lateness
    return fact.because if look is STALE else ""

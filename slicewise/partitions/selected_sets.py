"""The sets of partitions that a selection names; `longest` bounds texts that people typed."""

from slicewise.partitions.definition import PartitionDefinition, PartitionSet
from slicewise.partitions.selection import LONGEST_SELECTION
from slicewise.partitions.windows import Bound


def select(
    definition: PartitionDefinition,
    text: str,
    since: Bound = None,
    until: Bound = None,
    *,
    longest: int | None = LONGEST_SELECTION,
) -> PartitionSet:
    """Return the partitions that a selection names. Raises SelectionError.

    `longest` is for generated texts: the text of a set may be longer than a typed selection.
    """
    return PartitionSet(*definition.read_selection(text, since, until, longest=longest))


def select_ranges(
    definition: PartitionDefinition,
    text: str,
    since: Bound = None,
    until: Bound = None,
    *,
    longest: int | None = LONGEST_SELECTION,
) -> tuple[PartitionSet, ...]:
    """Return one set per selected range, in the written order, without keys of earlier sets."""
    definition, window_ranges = definition.read_selection(text, since, until, longest=longest)
    selected, range_sets = PartitionSet(definition, ()), []
    for window_range in window_ranges:
        range_set = PartitionSet(definition, [window_range]) - selected
        if range_set:
            range_sets.append(range_set)
            selected |= range_set
    return tuple(range_sets)

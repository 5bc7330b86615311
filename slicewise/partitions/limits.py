"""Limits on the size of definitions, which a server sets, with defaults."""

from typing import NamedTuple

from slicewise.errors import UnboundedPartitionsError
from slicewise.partitions.by_sequence import PartitionBySequence
from slicewise.partitions.definition import PartitionDefinition


class Limits(NamedTuple):
    """The limits; each has a server setting of the same name, in capitals."""

    max_segments_per_sequence: int = 10_000
    max_partitions_per_tick: int = 10_000
    max_partitions_per_backfill: int = 1_000_000


def limit_error(
    definition: PartitionDefinition | None, limits: Limits, *, by_time: bool, refresh: int = 0
) -> str | None:
    """Return the error sentence for a definition over a limit: too many segments, or too many
    partitions that each tick makes or makes again. Return None for any other definition.

    ``by_time``: the asset's schedule is a time or joins a time; each tick makes whole windows.
    ``refresh``: how many earlier windows each tick makes again.
    """
    if definition is None:
        return None
    for dimension in definition.dimensions:
        sequence = dimension.definition
        count = len(sequence.values) if isinstance(sequence, PartitionBySequence) else 0
        if count > limits.max_segments_per_sequence:
            return _sentence(
                f"the sequence {dimension.name!r} has {count:,} segments",
                "max_segments_per_sequence",
                limits,
            )
    count = _segment_count(definition)
    name = "max_partitions_per_tick" if by_time else "max_partitions_per_backfill"
    if count > getattr(limits, name):
        whole = "one window, or the asset without windows, has"
        subject = "one tick materializes" if by_time else whole
        return _sentence(f"{subject} {count:,} partitions, one for each segment", name, limits)
    most = limits.max_partitions_per_tick
    if refresh * count > most:
        subject = (
            f"with refresh={refresh} one tick materializes {refresh * count:,} partitions again"
        )
        sentence = _sentence(subject, "max_partitions_per_tick", limits)
        return f"{sentence}; write refresh={most // count}, or less"
    return None


def _segment_count(definition: PartitionDefinition) -> int:
    try:
        return definition.space.segments.count
    except UnboundedPartitionsError:  # found at run time
        return 0


def _sentence(problem: str, name: str, limits: Limits) -> str:
    return (
        f"{problem}; the limit is {getattr(limits, name):,} (setting {name.upper()} of the server)"
    )

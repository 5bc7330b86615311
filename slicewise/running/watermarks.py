"""Watermarks: the part of a source that a run reads, between two keys of runtime partitions."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from slicewise.errors import PartitionError
from slicewise.keys.partition_key import PartitionKey
from slicewise.partitions.by_sequence import PartitionAtRuntime
from slicewise.partitions.definition import PartitionDefinition


class Watermark(NamedTuple):
    """The part of a source that a run reads: rows after ``low``, up to and with ``high``."""

    low: Any
    """The greatest key below ``high``; ``previous`` without such a key."""
    high: Any
    """The key; None in a run that discovers partitions, which chooses the key."""


def watermark(
    definition: PartitionDefinition | None,
    own_keys: Sequence[PartitionKey],
    past: Iterable[PartitionKey],
    *,
    previous: Any,
    key: object,
) -> Watermark:
    """Return the watermark of a key of a run or, in a run that discovers partitions, of the next
    key.

    ``past`` are the other materialized keys, in any order. Raises PartitionError.
    """
    if not isinstance(definition, PartitionAtRuntime):
        raise PartitionError(
            "a watermark is a key of a PartitionAtRuntime, and this run has"
            f" {_other_partitions(definition)}"
        )
    high = _high_key(own_keys, key)
    others = _of_one_kind([*past, *own_keys], high)
    low = max((other for other in others if high is None or other < high), default=None)
    return Watermark(
        low=previous if low is None else low.value, high=None if high is None else high.value
    )


def _of_one_kind(keys: Sequence[PartitionKey], high: PartitionKey | None) -> list[PartitionKey]:
    """Return the keys without the texts, unless keys are texts: a worker knows only the text of a
    key that was removed from the set.
    """
    values = [key.value for key in keys] if high is None else [high.value]
    has_texts = all(isinstance(value, str) for value in values)
    return [key for key in keys if isinstance(key.value, str) == has_texts]


def _other_partitions(definition: PartitionDefinition | None) -> str:
    if definition is None:
        return "no partitions"
    if definition.time_dimension is not None:
        return "windows of time; context['partition'].interval has start and end"
    return f"{definition!r}"


def _high_key(own_keys: Sequence[PartitionKey], key: object) -> PartitionKey | None:
    """Return the run's key, or the one that ``key`` names; None in a run without keys."""
    if key is not None:
        wanted_key = PartitionKey.of(key)
        if wanted_key not in own_keys:
            raise PartitionError(f"{key!r} is no partition of this run")
        return wanted_key
    if len(own_keys) > 1:
        raise PartitionError(
            f"this run covers {len(own_keys)} partitions; ask for each of"
            " context['partition'].keys: context.watermark(key=..., previous=...)"
        )
    return own_keys[0] if own_keys else None

"""The comparison of partitions' data with the amounts on record."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slicewise.io.base import Measured, Storage
from slicewise.keys.partition_key import PartitionKey
from slicewise.partitions.definition import PartitionDefinition
from slicewise.texts import counted, listed

_NAMED_AT_MOST = 5
# A partition that is published after its data is measured and before its record is read differs.
_LOOKS, _PAUSE_SECONDS = 3, 0.2


@dataclass(frozen=True, kw_only=True)
class PartitionRecord:
    """The amount of a partition's data on record; None for a number that is not recorded."""

    rows: int | None = None
    bytes: int | None = None
    files: int | None = None
    is_least: bool = False
    """Whether the partition holds at least as much: the record is not of the whole partition, or
    another asset appends to the same location.
    """

    def to_json(self) -> list[Any]:
        """Return the record as JSON, in the form in which a worker answers a runner."""
        recorded = [self.rows, self.bytes, self.is_least]
        return recorded if self.files is None else [*recorded, self.files]

    @classmethod
    def from_json(cls, content: Sequence[Any]) -> "PartitionRecord":
        """Read the JSON that `to_json` wrote."""
        rows, size, is_least, *files = content
        return cls(rows=rows, bytes=size, files=files[0] if files else None, is_least=is_least)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A partition whose data differs from the record; ``actual`` is None if there is no data."""

    key: str
    path: str
    recorded: PartitionRecord
    actual: Measured | None

    @property
    def reason(self) -> str:
        """The difference, in a few words."""
        if self.actual is None:
            return "no data"
        if _deviates(self.recorded.files, self.actual.files, is_least=self.recorded.is_least):
            number = self.actual.files or 0
            files = "1 file" if number == 1 else f"{number:,} files"
            return f"{files}, {self.recorded.files or 0:,} recorded"
        if self.actual.bytes is not None and self.recorded.bytes is not None:
            return f"{self.actual.bytes:,} bytes, {self.recorded.bytes:,} recorded"
        return f"{self.actual.rows or 0:,} rows, {self.recorded.rows or 0:,} recorded"


class LostDataError(ValueError):
    """Data of partitions is missing, or differs from the record of its publication."""


Records = Callable[[Sequence[str]], Mapping[str, PartitionRecord]]
"""A function that returns records by key text; none of a partition that is being published."""


def find_differences(
    storage: Storage,
    definition: PartitionDefinition | None,
    keys: Sequence[PartitionKey],
    records: Records,
) -> list[Difference] | None:
    """Return the partitions whose data differs from the record; None if the storage cannot measure.

    The data is measured first, and the record is read afterwards; both again where the two differ.
    """
    differing: list[Difference] = []
    for look in range(_LOOKS):
        if look:
            time.sleep(_PAUSE_SECONDS)
        paths = {key.text: storage.partition_path(definition, key) for key in keys}
        measured = storage.measure(list(paths.values()))
        if measured is None:
            return None
        recorded = records(list(paths))
        differing = [
            Difference(key=text, path=path, recorded=recorded[text], actual=measured[path])
            for text, path in paths.items()
            if text in recorded and differs(recorded[text], measured[path])
        ]
        differing_keys = {difference.key for difference in differing}
        keys = [key for key in keys if key.text in differing_keys]
        if not keys:
            break
    return differing


def differs(recorded: PartitionRecord, actual: Measured | None) -> bool:
    """Return whether data differs from the record."""
    if actual is None:
        return True
    pairs = (
        (recorded.files, actual.files),
        (recorded.bytes, actual.bytes),
        (recorded.rows, actual.rows),
    )
    return any(_deviates(*pair, is_least=recorded.is_least) for pair in pairs)


def _deviates(expected: int | None, number: int | None, *, is_least: bool) -> bool:
    if expected is None or number is None:
        return False
    return number < expected if is_least else number != expected


def lost_data_sentence(asset: str, differing: Sequence[Difference]) -> str:
    """Say which partitions differ, and how to repair them."""
    count = len(differing)
    texts = [
        f"{difference.key} ({difference.reason})" if difference.key else difference.reason
        for difference in differing
    ]
    named = listed(texts, _NAMED_AT_MOST)
    subject = (
        f"{counted(count, 'partition')} of {asset}" if differing[0].key else f"the data of {asset}"
    )
    verb = "are" if count > 1 else "is"
    return (
        f"{subject} that this run reads {verb} not as recorded when published: {named}."
        f" {repair_advice(differing)}; `slicewise partitions verify {asset}` lists all differences"
    )


def repair_advice(differing: Sequence[Difference]) -> str:
    """Say how to repair the partitions, without a full stop at the end.

    A new run that appends adds its rows to the data that is left.
    """
    records = [difference.recorded for difference in differing]
    if any(record.files is not None or record.is_least for record in records):
        return (
            "Restore the lost data, or remove the rest of the data and materialize the data again:"
            " a run that appends adds its rows to the data that is left"
        )
    return "Materialize the data again"

"""Compares the data of partitions with what is on record of it."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slicewise.definitions import PartitionDefinition
from slicewise.io.base import Measured, Storage
from slicewise.keys import PartitionKey

_NAMED_AT_MOST = 5
# A partition that is published between a look at its data and one at its record differs from it.
_LOOKS, _PAUSE_SECONDS = 3, 0.2


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """What is on record of the data of a partition; None for what is not."""

    rows: int | None = None
    bytes: int | None = None
    is_least: bool = False
    """Whether the partition holds at least as much: the record is of what was appended last."""

    def to_json(self) -> list[Any]:
        """As a worker answers a runner."""
        return [self.rows, self.bytes, self.is_least]

    @classmethod
    def from_json(cls, content: Sequence[Any]) -> "Recorded":
        """Read the JSON that `to_json` wrote."""
        rows, size, is_least = content
        return cls(rows=rows, bytes=size, is_least=is_least)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A partition whose data is not as it was recorded; ``actual`` is None where there is none."""

    key: str
    path: str
    recorded: Recorded
    actual: Measured | None

    @property
    def reason(self) -> str:
        """Say what differs, in a few words."""
        if self.actual is None:
            return "no data"
        if self.actual.bytes is not None and self.recorded.bytes is not None:
            return f"{self.actual.bytes:,} bytes, {self.recorded.bytes:,} recorded"
        return f"{self.actual.rows or 0:,} rows, {self.recorded.rows or 0:,} recorded"


class LostDataError(ValueError):
    """Data of partitions is missing, or is not what was recorded when it was published."""


Records = Callable[[Sequence[str]], Mapping[str, Recorded]]
"""Returns what is on record of partitions, by key text; nothing of those that are being published.
"""


def find_differences(
    storage: Storage,
    definition: PartitionDefinition | None,
    keys: Sequence[PartitionKey],
    records: Records,
) -> list[Difference] | None:
    """Return the partitions whose data differs from its record; None where the storage cannot say.

    The data is looked at first, the record afterwards, and again where the two differ.
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
        wrong = {difference.key for difference in differing}
        keys = [key for key in keys if key.text in wrong]
        if not keys:
            break
    return differing


def differs(recorded: Recorded, actual: Measured | None) -> bool:
    """Return whether data is not as it was recorded."""
    if actual is None:
        return True
    pairs = ((recorded.bytes, actual.bytes), (recorded.rows, actual.rows))
    return any(
        expected is not None
        and number is not None
        and (number < expected if recorded.is_least else number != expected)
        for expected, number in pairs
    )


def lost_data_sentence(asset: str, differing: Sequence[Difference]) -> str:
    """Say which partitions differ, and what helps."""
    count = len(differing)
    listed = [f"{one.key} ({one.reason})" if one.key else one.reason for one in differing]
    named = ", ".join(listed[:_NAMED_AT_MOST])
    more = f" and {count - _NAMED_AT_MOST:,} more" if count > _NAMED_AT_MOST else ""
    which = f"{count:,} partitions" if count > 1 else "1 partition"
    subject = f"{which} of {asset}" if differing[0].key else f"the data of {asset}"
    verb = "are" if count > 1 else "is"
    return (
        f"{subject} that this run reads {verb} not as recorded when published: {named}{more}."
        f" Make {'them' if count > 1 else 'it'} again; slicewise partitions verify {asset} lists"
        " all that differ"
    )

"""Functions on partition definitions, and texts about partitions that do not exist."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import slicewise
from slicewise.partitions import Nonexistent


def has_time(definition: slicewise.PartitionDefinition | None) -> bool:
    """Return whether the definition has a dimension of time."""
    return definition is not None and definition.time_dimension is not None


def identity_of(definition: slicewise.PartitionDefinition | None) -> str:
    """Return the identity under which partitions of a definition are stored (`Asset.identity`)."""
    return "whole" if definition is None else definition.identity


def nonexistent_text(nonexistent: Nonexistent) -> str:
    """Return ``5 do not exist: 2024-01-01 to 2024-01-05``; an empty text if all exist."""
    if not nonexistent:
        return ""
    return _count_text(nonexistent.partitions, "not exist", nonexistent.first, nonexistent.last)


def _count_text(count: int, predicate: str, first: str, last: str) -> str:
    verb = "does" if count == 1 else "do"
    ends = f"{first} to {last}" if last != first else first
    # An unpartitioned asset has no keys.
    return f"{count:,} {verb} {predicate}" + (f": {ends}" if ends else "")


def nonexistent_json(nonexistent: Nonexistent) -> dict[str, Any] | None:
    """Return the count of nonexistent partitions, the first and the last; None if all exist."""
    if not nonexistent:
        return None
    return {
        "partitions": nonexistent.partitions,
        "first": nonexistent.first,
        "last": nonexistent.last,
    }


class RemovedPartitions(NamedTuple):
    """The count of partitions that a definition lost, and key texts of the first and the last."""

    partitions: int
    first: str
    last: str

    @property
    def text(self) -> str:
        """``14 do not exist any more: 2024-01-01|north to 2024-01-14|north``."""
        return _count_text(self.partitions, "not exist any more", self.first, self.last)


@dataclass(frozen=True, slots=True)
class UpstreamGap:
    """Needed partitions of one upstream asset that do not exist, and the count of excluded
    partitions, which are not needed.

    ``removed`` counts partitions that the upstream definition had when a backfill froze the
    definition, and no longer has. ``is_outdated`` says that the frozen definition is not the one in
    force.
    """

    asset: str
    nonexistent: Nonexistent
    excluded: int
    removed: RemovedPartitions | None = None
    is_outdated: bool = False

    @property
    def text(self) -> str:
        """``5 do not exist: 2024-01-01 to 2024-01-05``."""
        texts = [nonexistent_text(self.nonexistent), self.removed.text if self.removed else ""]
        return ", ".join(text for text in texts if text)

    @property
    def reason(self) -> str:
        """``load, 5 do not exist: 2024-01-01 to 2024-01-05``; empty if all exist."""
        return f"{self.asset}, {self.text}" if self.text else ""

    @property
    def excluded_text(self) -> str:
        """The count of excluded partitions: ``8 excluded partitions of load``; empty for none."""
        noun = "partition" if self.excluded == 1 else "partitions"
        return f"{self.excluded:,} excluded {noun} of {self.asset}" if self.excluded else ""

"""Small questions about rules, as columns and other rows keep them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import slicewise
from slicewise.mapping import WindowMapping
from slicewise.nonexistent import Nonexistent


def has_time(definition: slicewise.PartitionDefinition | None) -> bool:
    """Return whether the definition has a dimension of time."""
    return definition is not None and definition.time_dimension is not None


def identity_of(definition: slicewise.PartitionDefinition | None) -> str:
    """Return the identity under which partitions of a definition are stored (`Asset.identity`)."""
    return "whole" if definition is None else definition.identity


def mapping_of(spec: Mapping[str, Any] | None) -> slicewise.PartitionMapping | None:
    """Return the explicit mapping of a dependency; None for overlap.

    Raises the errors of `slicewise.PartitionMapping.from_json`.
    """
    return None if spec is None else slicewise.PartitionMapping.from_json(spec)


def nonexistent_text(nonexistent: Nonexistent) -> str:
    """``5 do not exist: 2024-01-01 to 2024-01-05``; empty where there is nothing of it."""
    if not nonexistent:
        return ""
    return _counted(nonexistent.partitions, "not exist", nonexistent.first, nonexistent.last)


def _counted(count: int, what: str, first: str, last: str) -> str:
    verb = "does" if count == 1 else "do"
    ends = f"{first} to {last}" if last != first else first
    # What is not partitioned has no key.
    return f"{count:,} {verb} {what}" + (f": {ends}" if ends else "")


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
    """The number of partitions that a definition does not have any more, and the key texts of the
    first and the last.
    """

    partitions: int
    first: str
    last: str

    @property
    def text(self) -> str:
        """``14 do not exist any more: 2024-01-01|north to 2024-01-14|north``."""
        return _counted(self.partitions, "not exist any more", self.first, self.last)


@dataclass(frozen=True, slots=True)
class UpstreamGap:
    """Partitions of one upstream asset that are needed and do not exist, and the number of those
    that it excludes, which are not needed.

    ``removed`` are those that its definition had when a backfill froze it and does not have any
    more. ``is_outdated`` says that the definition which was frozen is not the one in force.
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
        """``load, 5 do not exist: 2024-01-01 to 2024-01-05``; empty where all exists."""
        return f"{self.asset}, {self.text}" if self.text else ""

    @property
    def excluded_text(self) -> str:
        """``8 excluded partitions of load``; empty where none is excluded."""
        noun = "partition" if self.excluded == 1 else "partitions"
        return f"{self.excluded:,} excluded {noun} of {self.asset}" if self.excluded else ""


def goes_by_windows(mapping: slicewise.PartitionMapping | None) -> bool:
    """Return whether a window's needs follow from its place in time, as with overlap and offsets.

    Other mappings need the same for all windows: all of time, or the last window, as far as time is
    bounded.
    """
    return mapping is None or isinstance(mapping, WindowMapping)


def needs_all_of_time(
    downstream: slicewise.PartitionDefinition | None,
    upstream: slicewise.PartitionDefinition | None,
    mapping: slicewise.PartitionMapping | None,
) -> bool:
    """Return whether upstream windows are needed whatever the downstream window is: all of their
    time, or the last window. Their time begins with the first window that was ever materialized.
    """
    by_own_window = has_time(downstream) and goes_by_windows(mapping)
    return has_time(upstream) and not by_own_window

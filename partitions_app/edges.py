"""Edges: the partitions that one asset needs of another one (docs/internals/calendar.md, need
rules).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import slicewise
from partitions_app.rules import has_time
from slicewise.keys import WHOLE
from slicewise.mapping import WindowMapping, blocked_partitions
from slicewise.partitions import Nonexistent

Definition = slicewise.PartitionDefinition | None


def mapping_of(spec: Mapping[str, Any] | None) -> slicewise.PartitionMapping | None:
    """Return the explicit mapping of a dependency; None for overlap.

    Raises the errors of `slicewise.PartitionMapping.from_json`.
    """
    return None if spec is None else slicewise.PartitionMapping.from_json(spec)


@dataclass(frozen=True, eq=False, kw_only=True)
class Edge:
    """The need of a downstream asset for partitions of an upstream asset, by both definitions.

    ``mapping`` is None for overlap. ``since`` and ``until`` bound the time of the upstream asset
    where all of that time, or the last window of that time, is needed.
    """

    downstream: Definition
    upstream: Definition
    mapping: slicewise.PartitionMapping | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def reads_whatever_exists(self) -> bool:
        """Whether an unpartitioned asset reads a partitioned one, so that missing partitions do not
        matter (need rule 5).
        """
        return self.downstream is None and self.upstream is not None and self.mapping is None

    @property
    def depends_on_own_window(self) -> bool:
        """Whether the time of a window decides its needs, as with overlap and offsets.

        With other mappings all windows need the same: all of time, or the last window, as far as
        time is bounded.
        """
        return self.mapping is None or isinstance(self.mapping, WindowMapping)

    @property
    def needs_all_of_time(self) -> bool:
        """Whether every downstream window needs the same upstream windows: all of upstream time, or
        the last window. Upstream time begins with the first window that was ever materialized.
        """
        by_own_window = has_time(self.downstream) and self.depends_on_own_window
        return has_time(self.upstream) and not by_own_window

    @property
    def has_common_needs(self) -> bool:
        """Whether all downstream windows need the same upstream partitions, so that a write is a
        tick for windows that have ended.
        """
        by_own_window = has_time(self.upstream) and self.depends_on_own_window
        return has_time(self.downstream) and not by_own_window

    def needed(self, keys: object) -> slicewise.PartitionSet:
        """Return the upstream partitions that some downstream partitions need."""
        return slicewise.upstream_partitions(
            self.downstream, self.upstream, keys, self.mapping, since=self.since, until=self.until
        )

    def needed_by_texts(self, texts: Iterable[str]) -> slicewise.PartitionSet:
        """Return the upstream partitions that the partitions of these key texts need.

        Raises ValueError for a text that the downstream definition does not have.
        """
        if self.downstream is None:
            return self.needed([WHOLE])
        return self.needed([self.downstream.parse(text) for text in texts])

    def following(
        self,
        upstream: slicewise.PartitionSet,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> slicewise.PartitionSet:
        """Return the downstream partitions that need some of the upstream partitions.

        Where only the downstream asset has time, or all downstream windows need the same
        partitions, the result is bounded by ``since`` and ``until``.
        """
        if self.depends_on_own_window:
            return slicewise.downstream_partitions(
                self.upstream, self.downstream, upstream, self.mapping, since=since, until=until
            )
        # Such a mapping reads the bounds for both sides: the last upstream window may well begin
        # before the first downstream window.
        begins = [begin for begin in (self.since, since) if begin is not None]
        followers = slicewise.downstream_partitions(
            self.upstream, self.downstream, upstream, self.mapping,
            since=min(begins, default=None), until=self.until,
        )  # fmt: skip
        return followers & slicewise.downstream_partitions(
            None, self.downstream, [WHOLE], since=since, until=until
        )

    def needing(
        self, upstream: slicewise.PartitionSet, chosen: slicewise.PartitionSet
    ) -> slicewise.PartitionSet:
        """Return the chosen downstream partitions that need some of the upstream partitions."""
        if not upstream or not chosen:
            return slicewise.PartitionSet(self.downstream, ())
        hull = chosen.hull
        return chosen & self.following(
            upstream, hull.start if hull else self.since, hull.end if hull else self.until
        )

    def needing_nonexistent(
        self, chosen: slicewise.PartitionSet, blocking: Nonexistent
    ) -> slicewise.PartitionSet:
        """Return the chosen downstream partitions that need some of the nonexistent upstream
        partitions, which name no excluded windows.
        """
        return blocked_partitions(self.downstream, self.upstream, chosen, blocking, self.mapping)

"""Downstream partitions that a new upstream partition concerns (need rules)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import slicewise
from assets_app.models import AssetDependency, Target
from assets_app.queries.edges import edge_without_bounds
from partitions_app.concerned import concerned_partitions

Write = tuple[int | None, int | None]
"""The id of a run, or the id of a write report: one of the two is None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPartition:
    """A materialized partition of an upstream asset, and the time of an earlier materialization."""

    # The run or the write report of the materialization. The partitions that one write may queue
    # are limited.
    write: Write
    asset_id: int
    identity: str
    key: str
    at: datetime
    # When an earlier version that made partitions due was written, for a partition without a
    # window; None for the first version.
    before: datetime | None


def affected(
    dependency: AssetDependency,
    target: Target,
    new_partitions: Sequence[NewPartition],
    *,
    since: datetime,
    now: datetime,
) -> slicewise.PartitionSet:
    """Return the partitions of the target downstream of the new upstream partitions, as
    ``concerned_partitions`` describes; ``since`` is when the schedule began.
    """
    edge = edge_without_bounds(dependency, target)
    identity = dependency.upstream.identity
    writes = [partition for partition in new_partitions if partition.identity == identity]
    return concerned_partitions(edge, writes, since=since, now=now)

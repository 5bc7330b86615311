"""The partitions that cannot be materialized, because needed upstream partitions are missing and
will not be materialized.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_

import slicewise
from assets_app.models import SkipReason
from assets_app.queries.partition_spans import spans
from backfills_app.services.partitions.frozen_assets import BackfillEdge
from backfills_app.services.partitions.scopes import AssetScope
from partitions_app.rules import RemovedPartitions, UpstreamGap
from slicewise.declaring import evaluate_schedule

# Returns those of the needed upstream partitions that are materialized or will be.
Available = Callable[[BackfillEdge, slicewise.PartitionSet], slicewise.PartitionSet]


@dataclass(frozen=True, slots=True)
class BlockedPartitions:
    """The partitions blocked by missing upstream partitions (``all``), the partitions among these
    that need nonexistent ones (``nonexistent``), and the partitions that the upstream asset of an
    edge blocks (``by_edge``).
    """

    all: slicewise.PartitionSet
    nonexistent: slicewise.PartitionSet
    by_edge: Mapping[BackfillEdge, slicewise.PartitionSet] = field(default_factory=dict)

    @property
    def by_reason(self) -> dict[SkipReason, slicewise.PartitionSet]:
        """The blocked partitions by the reason for the skip."""
        return {
            SkipReason.UPSTREAM_MISSING: self.all - self.nonexistent,
            SkipReason.UPSTREAM_NONEXISTENT: self.nonexistent,
        }


def blocked_partitions(
    scope: AssetScope, chosen: slicewise.PartitionSet, available: Available
) -> BlockedPartitions:
    """Return the chosen partitions that lack an inlet, or whose schedule's condition is not met.

    All inlets are needed, except the inlets in the schedule: `a | b` is met by either, and `a |
    Cron("@daily")` by none. An asset that is to be fresh is needed, however old.
    """
    blocked_by_edge = {edge: _blocked_by_edge(edge, chosen, available) for edge in scope.edges}
    blocked_by_name = {edge.asset.name: blocked for edge, blocked in blocked_by_edge.items()}
    spec = scope.version.spec
    scheduling = [*spec.scheduling_names, *spec.fresh_names]
    by_schedule = not_blocked = BlockedPartitions(scope.nothing, scope.nothing)
    if scheduling and spec.schedule is not None:
        by_schedule = evaluate_schedule(
            spec.schedule,
            # A person asks now: no tick is waited for.
            lambda leaf: blocked_by_name.get(leaf.get("name", ""), not_blocked),
            of_any=_intersect,
            of_all=_unite,
        )
    by_inlets = [
        blocked for edge, blocked in blocked_by_edge.items() if edge.asset.name not in scheduling
    ]
    united = _unite([by_schedule, *by_inlets])
    by_edge = {
        # An asset of the schedule blocks no partition for which the schedule's condition is met.
        edge: blocked.all & by_schedule.all if edge.asset.name in scheduling else blocked.all
        for edge, blocked in blocked_by_edge.items()
    }
    return BlockedPartitions(united.all, united.nonexistent, by_edge)


def upstream_gaps(
    scope: AssetScope, chosen: slicewise.PartitionSet, available: Available
) -> tuple[UpstreamGap, ...]:
    """Return, by asset, the upstream partitions that the chosen partitions need and that do not
    exist, or do not exist any more.
    """
    gaps_by_edge = (
        _upstream_gap(edge, chosen, available)
        for edge in scope.edges
        if not edge.reads_whatever_exists
    )
    return tuple(
        upstream_gap
        for upstream_gap in gaps_by_edge
        if upstream_gap.nonexistent or upstream_gap.excluded or upstream_gap.removed
    )


def _upstream_gap(
    edge: BackfillEdge, chosen: slicewise.PartitionSet, available: Available
) -> UpstreamGap:
    needed = edge.needed(chosen)
    removed = None
    if edge.is_outdated and (removed_partitions := edge.removed(needed - available(edge, needed))):
        removed = RemovedPartitions(
            len(removed_partitions), removed_partitions[0].text, removed_partitions[-1].text
        )
    return UpstreamGap(
        edge.asset.name,
        needed.blocking,
        needed.excluded.partitions,
        removed,
        is_outdated=edge.is_outdated,
    )


def materialized(edge: BackfillEdge, needed: slicewise.PartitionSet) -> slicewise.PartitionSet:
    """Return the needed upstream partitions that have data."""
    by_label = spans(edge.upstream, [edge.asset], needed, condition="partition.version > 0")
    return by_label.get("", slicewise.PartitionSet(edge.upstream, ()))


def _blocked_by_edge(
    edge: BackfillEdge, chosen: slicewise.PartitionSet, available: Available
) -> BlockedPartitions:
    no_partitions = slicewise.PartitionSet(edge.downstream, ())
    if not chosen:
        return BlockedPartitions(no_partitions, no_partitions)
    needed = edge.needed(chosen)
    if edge.reads_whatever_exists:
        return BlockedPartitions(
            no_partitions if available(edge, needed) else chosen, no_partitions
        )
    if not needed and not needed.nonexistent:
        # All partitions of a time are needed, and that time has none.
        return BlockedPartitions(chosen, no_partitions)
    missing = needed - available(edge, needed)
    nonexistent = edge.needing_nonexistent(chosen, needed.blocking)
    nonexistent |= edge.needing(edge.removed(missing), chosen)
    return BlockedPartitions(edge.needing(missing, chosen) | nonexistent, nonexistent)


def _unite(operands: Sequence[BlockedPartitions]) -> BlockedPartitions:
    """Return the partitions blocked by one operand or more."""
    return BlockedPartitions(
        reduce(or_, [operand.all for operand in operands]),
        reduce(or_, [operand.nonexistent for operand in operands]),
    )


def _intersect(operands: Sequence[BlockedPartitions]) -> BlockedPartitions:
    """Return the partitions blocked by every operand."""
    return BlockedPartitions(
        reduce(and_, [operand.all for operand in operands]),
        reduce(and_, [operand.nonexistent for operand in operands]),
    )

"""The partitions that cannot be materialized, because needed upstream partitions are missing and
will not be materialized.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import slicewise
from assets_app.catalogue.refusals import scheduling_names
from backfills_app.services.partitions.scopes import AssetScope, Edge
from backfills_app.services.partitions.spans import spans
from partitions_app.rules import RemovedPartitions, UpstreamGap
from slicewise.declaring import is_time

# Returns those of the needed upstream partitions that are materialized or will be.
Available = Callable[[Edge, slicewise.PartitionSet], slicewise.PartitionSet]


@dataclass(frozen=True, slots=True)
class BlockedPartitions:
    """The partitions blocked by missing upstream partitions (``all``), and the partitions among
    these that need nonexistent ones (``nonexistent``).
    """

    all: slicewise.PartitionSet
    nonexistent: slicewise.PartitionSet


def blocked_partitions(
    scope: AssetScope, chosen: slicewise.PartitionSet, available: Available
) -> BlockedPartitions:
    """Return the chosen partitions that lack an inlet, or whose schedule's condition is not met.

    All inlets are needed, except the inlets in the schedule: `a | b` is met by either, and `a |
    Cron("@daily")` by none.
    """
    blocked_by_name = {
        edge.upstream.name: _blocked_by_edge(edge, chosen, available) for edge in scope.edges
    }
    definition = scope.version.definition
    schedule = definition.get("schedule")
    scheduling = set(scheduling_names(schedule))
    not_blocked = BlockedPartitions(scope.nothing, scope.nothing)
    conditions = [blocked for name, blocked in blocked_by_name.items() if name not in scheduling]
    if scheduling:
        conditions.append(_evaluate(schedule, blocked_by_name, not_blocked))
    return _unite(conditions, not_blocked)


def gaps(
    scope: AssetScope, chosen: slicewise.PartitionSet, available: Available
) -> tuple[UpstreamGap, ...]:
    """Return, by asset, the upstream partitions that the chosen partitions need and that do not
    exist, or do not exist any more.
    """
    upstream_gaps = (
        _gap(edge, chosen, available) for edge in scope.edges if not edge.reads_whatever_there_is
    )
    return tuple(gap for gap in upstream_gaps if gap.nonexistent or gap.excluded or gap.removed)


def _gap(edge: Edge, chosen: slicewise.PartitionSet, available: Available) -> UpstreamGap:
    needed = edge.needed(chosen)
    removed = None
    if edge.is_outdated and (removed_partitions := edge.removed(needed - available(edge, needed))):
        removed = RemovedPartitions(
            len(removed_partitions), removed_partitions[0].text, removed_partitions[-1].text
        )
    return UpstreamGap(
        edge.upstream.name,
        needed.blocking,
        needed.excluded.partitions,
        removed,
        is_outdated=edge.is_outdated,
    )


def there(edge: Edge, needed: slicewise.PartitionSet) -> slicewise.PartitionSet:
    """Return the needed upstream partitions that have data."""
    by_label = spans(edge.definition, [edge.upstream], needed, condition="slice.version > 0")
    return by_label.get("", slicewise.PartitionSet(edge.definition, ()))


def _blocked_by_edge(
    edge: Edge, chosen: slicewise.PartitionSet, available: Available
) -> BlockedPartitions:
    no_partitions = slicewise.PartitionSet(edge.downstream, ())
    if not chosen:
        return BlockedPartitions(no_partitions, no_partitions)
    needed = edge.needed(chosen)
    if edge.reads_whatever_there_is:
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


def _evaluate(
    expression: Mapping[str, Any],
    blocked_by_name: Mapping[str, BlockedPartitions],
    not_blocked: BlockedPartitions,
) -> BlockedPartitions:
    if expression["kind"] == "asset":
        return blocked_by_name.get(expression["name"], not_blocked)
    if is_time(expression):
        return not_blocked  # a person asks now: no tick is waited for
    operands = [_evaluate(operand, blocked_by_name, not_blocked) for operand in expression["of"]]
    if expression["kind"] == "all":
        return _unite(operands, not_blocked)
    common = operands[0]
    for operand in operands[1:]:
        common = BlockedPartitions(
            common.all & operand.all, common.nonexistent & operand.nonexistent
        )
    return common


def _unite(operands: list[BlockedPartitions], union: BlockedPartitions) -> BlockedPartitions:
    for operand in operands:
        union = BlockedPartitions(union.all | operand.all, union.nonexistent | operand.nonexistent)
    return union

"""Which partitions cannot be made, since something that they need is not there and will not be."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import slicewise
from assets_app.catalogue.refusals import scheduling_names
from backfills_app.services.parts import Edge, Part
from backfills_app.services.spans import spans
from partitions_app.rules import RemovedPartitions, UpstreamGap
from slicewise.schedules import is_time

# Of what is needed of an upstream asset: what is there or will be.
Available = Callable[[Edge, slicewise.PartitionSet], slicewise.PartitionSet]


@dataclass(frozen=True, slots=True)
class Lacking:
    """Partitions that lack something, and those of them that need what does not exist at all."""

    all: slicewise.PartitionSet
    nonexistent: slicewise.PartitionSet


def lacking(part: Part, chosen: slicewise.PartitionSet, available: Available) -> Lacking:
    """Return the chosen partitions that lack an inlet, or whose schedule's condition is not met.

    All inlets are needed, except the inlets in the schedule: `a | b` is met by either, and `a |
    Cron("@daily")` by none.
    """
    found = {edge.upstream.name: _lacking(edge, chosen, available) for edge in part.edges}
    definition = part.version.definition
    schedule = definition.get("schedule")
    scheduling = set(scheduling_names(schedule))
    none = Lacking(part.nothing, part.nothing)
    wanted = [each for name, each in found.items() if name not in scheduling]
    if scheduling:
        wanted.append(_evaluated(schedule, found, none))
    return _either(wanted, none)


def gaps(
    part: Part, chosen: slicewise.PartitionSet, available: Available
) -> tuple[UpstreamGap, ...]:
    """Return the upstream partitions that the chosen ones need and that do not exist, or not any
    more, by asset.
    """
    found = (
        _gap(edge, chosen, available) for edge in part.edges if not edge.reads_whatever_there_is
    )
    return tuple(gap for gap in found if gap.nonexistent or gap.excluded or gap.removed)


def _gap(edge: Edge, chosen: slicewise.PartitionSet, available: Available) -> UpstreamGap:
    needed = edge.needed(chosen)
    removed = None
    if edge.is_outdated and (gone := edge.removed(needed - available(edge, needed))):
        removed = RemovedPartitions(len(gone), gone[0].text, gone[-1].text)
    return UpstreamGap(
        edge.upstream.name,
        needed.blocking,
        needed.excluded.partitions,
        removed,
        is_outdated=edge.is_outdated,
    )


def there(edge: Edge, needed: slicewise.PartitionSet) -> slicewise.PartitionSet:
    """Return the needed upstream partitions that have data."""
    found = spans(edge.definition, [edge.upstream], needed, condition="slice.version > 0")
    return found.get("", slicewise.PartitionSet(edge.definition, ()))


def _lacking(edge: Edge, chosen: slicewise.PartitionSet, available: Available) -> Lacking:
    none = slicewise.PartitionSet(edge.downstream, ())
    if not chosen:
        return Lacking(none, none)
    needed = edge.needed(chosen)
    if edge.reads_whatever_there_is:
        return Lacking(none if available(edge, needed) else chosen, none)
    if not needed and not needed.nonexistent:
        # All of a time in which nothing ever happened.
        return Lacking(chosen, none)
    missing = needed - available(edge, needed)
    nonexistent = edge.needing_nonexistent(chosen, needed.blocking)
    nonexistent |= edge.needing(edge.removed(missing), chosen)
    return Lacking(edge.needing(missing, chosen) | nonexistent, nonexistent)


def _evaluated(
    expression: Mapping[str, Any], found: Mapping[str, Lacking], none: Lacking
) -> Lacking:
    if expression["kind"] == "asset":
        return found.get(expression["name"], none)
    if is_time(expression):
        return none  # a person asks now: no tick is waited for
    parts = [_evaluated(each, found, none) for each in expression["of"]]
    if expression["kind"] == "all":
        return _either(parts, none)
    both = parts[0]
    for each in parts[1:]:
        both = Lacking(both.all & each.all, both.nonexistent & each.nonexistent)
    return both


def _either(parts: list[Lacking], none: Lacking) -> Lacking:
    for each in parts:
        none = Lacking(none.all | each.all, none.nonexistent | each.nonexistent)
    return none

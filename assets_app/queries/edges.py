"""Edges between assets as the database has them: definitions in force, and the time on record."""

from dataclasses import replace
from datetime import datetime

from assets_app.models import Asset, AssetDependency, AssetPartition, Target
from partitions_app.edges import Edge, mapping_of


def edge_of(
    dependency: AssetDependency, now: datetime, downstream: Asset | Target | None = None
) -> Edge:
    """Return the edge of a dependency by the definitions in force; ``now`` ends the time of the
    upstream asset. One statement where all of that time is needed.
    """
    edge = edge_without_bounds(dependency, downstream)
    return with_time_on_record(edge, dependency.upstream, now)


def edge_without_bounds(
    dependency: AssetDependency, downstream: Asset | Target | None = None
) -> Edge:
    """Return the edge of a dependency by the definitions in force, without bounds of time.

    A caller that has the row of the downstream asset gives the row, which saves a statement. A
    caller for which the asset may count as not partitioned gives a target.
    """
    return Edge(
        downstream=(downstream or dependency.downstream).definition,
        upstream=dependency.upstream.definition,
        mapping=mapping_of(dependency.mapping),
    )


def with_time_on_record(edge: Edge, upstream: Asset, now: datetime) -> Edge:
    """Return the edge with the upstream asset's time until now.

    If all of an upstream's time is needed, that is the time from the first window that was ever
    materialized. For other edges, and where no window was ever materialized, ``since`` is ``now``.
    """
    first = first_start(upstream) if edge.needs_all_of_time else None
    return replace(edge, since=first or now, until=now)


def first_start(asset: Asset) -> datetime | None:
    """Return the start of the first window of an asset that was ever materialized, if any."""
    return AssetPartition.objects.made_of(asset).first_start()

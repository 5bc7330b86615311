"""Edges between assets as the database has them: definitions in force, and the time on record."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from django.db import connection

from assets_app.models import Asset, AssetDependency, AssetPartition, Target
from partitions_app.edges import Edge, mapping_of

_TIMES_ON_RECORD = """
SELECT requested.id,
       (SELECT window_start FROM {partitions} WHERE asset_id = requested.id
            AND identity = requested.identity AND version > 0 AND window_start IS NOT NULL
        ORDER BY window_start LIMIT 1),
       (SELECT window_end FROM {partitions} WHERE asset_id = requested.id
            AND identity = requested.identity AND version > 0 AND window_start IS NOT NULL
        ORDER BY window_start DESC LIMIT 1)
FROM unnest(%s::bigint[], %s::text[]) AS requested(id, identity)
"""


class TimeOnRecord(NamedTuple):
    """The start of the first window of an asset that was ever materialized, and the end of the
    last one; None where no window was.
    """

    since: datetime | None
    until: datetime | None


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
    return with_time_since(edge, first, now)


def with_time_since(edge: Edge, first: datetime | None, now: datetime) -> Edge:
    """Return the edge with the upstream asset's time until now, for a caller that has the start of
    the first window on record.
    """
    since = first if edge.needs_all_of_time else None
    return replace(edge, since=since or now, until=now)


def first_start(asset: Asset) -> datetime | None:
    """Return the start of the first window of an asset that was ever materialized, if any."""
    return AssetPartition.objects.materialized_of(asset).first_start()


def times_on_record(assets: Sequence[Asset]) -> dict[int, TimeOnRecord]:
    """Return the time on record of each asset by id: one statement."""
    query = _TIMES_ON_RECORD.format(partitions=AssetPartition._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(query, [[asset.pk for asset in assets], [a.identity for a in assets]])
        return {pk: TimeOnRecord(since, until) for pk, since, until in cursor.fetchall()}

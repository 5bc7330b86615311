"""Stale partitions as a set; `assets_app.queries.staleness` defines staleness of a single
partition.

The cost grows with the number of partitions examined and with the inputs of their attempts.
"""

from collections.abc import Collection, Mapping
from typing import Any

import slicewise
from assets_app.models import Asset, AssetDependency
from assets_app.queries.clock import database_now
from assets_app.queries.late_inputs import come_since
from assets_app.queries.partition_spans import labeled
from backfills_app.services.partitions.scopes import AssetScope
from partitions_app.edges import Edge, mapping_of

# A run of several partitions reads the inputs of all at once: which input belongs to which
# partition is a matter of mapping, unless one side has a single partition. Partitions of such runs
# are labeled by their attempt, other partitions by an empty text. Late inputs are on record
# for each partition.
_OUTDATED = """
WITH own AS MATERIALIZED (
    SELECT partition.segment, partition.window_start, partition.window_end, partition.key,
           materialization.attempt_id, materialization.run_id, run.partition_count
    FROM assets_app_assetpartition AS partition
    JOIN assets_app_materialization AS materialization
        ON materialization.partition_id = partition.id
          AND materialization.version = partition.version
    JOIN assets_app_run AS run ON run.id = materialization.run_id
    WHERE partition.asset_id = %(asset)s AND partition.identity = %(identity)s
      AND partition.state = 'materialized'
      AND (%(since)s::timestamptz IS NULL OR partition.window_start >= %(since)s)
      AND (%(until)s::timestamptz IS NULL OR partition.window_start < %(until)s)
), tried AS MATERIALIZED (
    SELECT DISTINCT attempt_id, partition_count FROM own
), outdated AS MATERIALIZED (
    SELECT DISTINCT tried.attempt_id,
           (tried.partition_count <= 1 OR %(is_whole)s OR newer.asset_id = ANY(%(whole)s)) AS alone
    FROM tried
    JOIN assets_app_attemptinput AS read ON read.attempt_id = tried.attempt_id
    JOIN assets_app_assetpartition AS newer
        ON newer.id = read.partition_id AND newer.version > read.version
    WHERE newer.asset_id = ANY(%(upstream)s)
)
SELECT CASE WHEN outdated.alone THEN '' ELSE own.attempt_id::text END AS label,
       own.segment, own.window_start, own.window_end, own.key
FROM own JOIN outdated USING (attempt_id)
UNION ALL
SELECT '', own.segment, own.window_start, own.window_end, own.key
FROM own JOIN assets_app_lateinput AS late
    ON late.run_id = own.run_id AND late.key = own.key AND late.reason = 'missing'
WHERE late.upstream_id = ANY(%(upstream)s)
  AND EXISTS ({come})
"""

# Partitions of one upstream asset that have changed since these attempts, by attempt.
_CHANGED = """
SELECT read.attempt_id::text AS label, partition.segment, partition.window_start,
    partition.window_end,
       partition.key
FROM assets_app_attemptinput AS read
JOIN assets_app_assetpartition AS partition
    ON partition.id = read.partition_id AND partition.version > read.version
WHERE read.attempt_id = ANY(%(attempts)s::bigint[])
  AND partition.asset_id = %(upstream)s AND partition.identity = %(identity)s
"""


def stale(scope: AssetScope, within: slicewise.PartitionSet) -> slicewise.PartitionSet:
    """Return the partitions within a set that have a newer input than the version that
    they read.
    """
    dependencies = AssetDependency.objects.filter(downstream=scope.asset)
    edges = list(dependencies.select_related("upstream__partition_definition"))
    if not within or not edges:
        return scope.nothing
    hull = within.hull
    values: dict[str, Any] = {
        "asset": scope.asset.pk,
        "identity": scope.asset.identity,
        "since": hull and hull.start,
        "until": hull and hull.end,
        "is_whole": scope.definition is None,
        "upstream": [edge.upstream_id for edge in edges],
        "whole": [
            dependency.upstream_id
            for dependency in edges
            if dependency.upstream.partition_definition_id is None
        ],
    }
    outdated = _OUTDATED.format(come=come_since("own.attempt_id"))
    shared = labeled(scope.definition, outdated, values)
    stale_partitions = shared.pop("", scope.nothing) & within
    for edge in edges if shared else ():
        for attempt, needing in _by_mapping(scope, edge, shared).items():
            stale_partitions |= needing & within & shared[attempt]
    return stale_partitions


def _by_mapping(
    scope: AssetScope, dependency: AssetDependency, attempts: Collection[str]
) -> Mapping[str, slicewise.PartitionSet]:
    """Return, by attempt, the partitions that need upstream partitions changed since
    the attempt.
    """
    upstream: Asset = dependency.upstream
    if upstream.definition is None:
        return {}
    now = database_now()
    edge = Edge(
        upstream=upstream.definition,
        downstream=scope.definition,
        mapping=mapping_of(dependency.mapping),
        since=now,
        until=now,
    )
    changed = labeled(
        upstream.definition,
        _CHANGED,
        {
            "attempts": [int(attempt) for attempt in attempts],
            "upstream": upstream.pk,
            "identity": upstream.identity,
        },
    )
    if not edge.depends_on_own_window:
        # With such a mapping the attempt has read the same inputs for all partitions.
        return dict.fromkeys(changed, scope.whole)
    return {
        attempt: edge.needing(changed_partitions, scope.whole)
        for attempt, changed_partitions in changed.items()
    }

"""Which partitions are stale, as a set: what `assets_app.queries.staleness` says of single ones.

Cost goes with the partitions that are looked at and with what their attempts have read.
"""

from collections.abc import Collection, Mapping
from typing import Any

import slicewise
from assets_app.models import Asset, AssetDependency
from assets_app.queries.clock import database_now
from backfills_app.services.parts import Edge, Part
from backfills_app.services.spans import labeled
from partitions_app.rules import goes_by_windows, mapping_of

# Runs of several partitions read for all of them at once: what each was made from is a matter of
# mapping, unless one side has a single partition. These are labeled by their attempt, the others
# by nothing.
_OUTDATED = """
WITH own AS MATERIALIZED (
    SELECT slice.segment, slice.window_start, slice.window_end, slice.key,
           made.attempt_id, run.partition_count
    FROM assets_app_assetpartition AS slice
    JOIN assets_app_materialization AS made
        ON made.slice_id = slice.id AND made.version = slice.version
    JOIN assets_app_run AS run ON run.id = made.run_id
    WHERE slice.asset_id = %(asset)s AND slice.identity = %(identity)s
      AND slice.state = 'materialized'
      AND (%(since)s::timestamptz IS NULL OR slice.window_start >= %(since)s)
      AND (%(until)s::timestamptz IS NULL OR slice.window_start < %(until)s)
), tried AS MATERIALIZED (
    SELECT DISTINCT attempt_id, partition_count FROM own
), outdated AS MATERIALIZED (
    SELECT DISTINCT tried.attempt_id,
           (tried.partition_count <= 1 OR %(is_whole)s OR piece.asset_id = ANY(%(whole)s)) AS alone
    FROM tried
    JOIN assets_app_attemptinput AS read ON read.attempt_id = tried.attempt_id
    JOIN assets_app_assetpartition AS piece
        ON piece.id = read.slice_id AND piece.version > read.version
    WHERE piece.asset_id = ANY(%(upstream)s)
)
SELECT CASE WHEN outdated.alone THEN '' ELSE own.attempt_id::text END AS label,
       own.segment, own.window_start, own.window_end, own.key
FROM own JOIN outdated USING (attempt_id)
"""

# What has changed of one upstream asset since these attempts, by attempt.
_CHANGED = """
SELECT read.attempt_id::text AS label, piece.segment, piece.window_start, piece.window_end,
       piece.key
FROM assets_app_attemptinput AS read
JOIN assets_app_assetpartition AS piece
    ON piece.id = read.slice_id AND piece.version > read.version
WHERE read.attempt_id = ANY(%(attempts)s::bigint[])
  AND piece.asset_id = %(upstream)s AND piece.identity = %(identity)s
"""


def stale(part: Part, within: slicewise.PartitionSet) -> slicewise.PartitionSet:
    """Return the partitions within a set that have a newer input than the version they were
    made from.
    """
    dependencies = AssetDependency.objects.filter(downstream=part.asset)
    edges = list(dependencies.select_related("upstream__partition_definition"))
    if not within or not edges:
        return part.nothing
    hull = within.hull
    values: dict[str, Any] = {
        "asset": part.asset.pk,
        "identity": part.asset.identity,
        "since": hull and hull.start,
        "until": hull and hull.end,
        "is_whole": part.definition is None,
        "upstream": [edge.upstream_id for edge in edges],
        "whole": [e.upstream_id for e in edges if e.upstream.partition_definition_id is None],
    }
    shared = labeled(part.definition, _OUTDATED, values)
    found = shared.pop("", part.nothing) & within
    for edge in edges if shared else ():
        for attempt, needing in _by_mapping(part, edge, shared).items():
            found |= needing & within & shared[attempt]
    return found


def _by_mapping(
    part: Part, dependency: AssetDependency, attempts: Collection[str]
) -> Mapping[str, slicewise.PartitionSet]:
    """By attempt, the partitions that need what has changed of the upstream asset since."""
    upstream: Asset = dependency.upstream
    if upstream.definition is None:
        return {}
    mapping = mapping_of(dependency.mapping)
    changed = labeled(
        upstream.definition,
        _CHANGED,
        {
            "attempts": [int(attempt) for attempt in attempts],
            "upstream": upstream.pk,
            "identity": upstream.identity,
        },
    )
    if not goes_by_windows(mapping):
        # Whatever the attempt has read, it has read for all alike.
        return dict.fromkeys(changed, part.whole)
    now = database_now()
    edge = Edge(
        upstream=upstream,
        definition=upstream.definition,
        present=upstream.definition,
        downstream=part.definition,
        mapping=mapping,
        since=now,
        until=now,
    )
    return {attempt: edge.needing(pieces, part.whole) for attempt, pieces in changed.items()}

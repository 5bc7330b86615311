"""Staleness of partitions: an input has been materialized again since the partition was.

Staleness is derived from versions, never marked: the attempt that materialized a partition recorded
the versions of the inputs (AttemptInput), and the partition is stale while one of these inputs has
a higher version now. An upstream partition that was missing at that time does not make the
partition stale, unless the schedule made the partition without waiting for it (a late input).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import connection

import slicewise
from assets_app.models import Asset, AssetDependency
from assets_app.queries.clock import database_now
from assets_app.queries.edges import edge_without_bounds
from assets_app.queries.keys import still_known
from assets_app.queries.late_inputs import come_since
from partitions_app.labels import label_of

# A run of several partitions reads the inputs of all at once, so keys are grouped by attempt.
_NEWER = """
WITH own_attempt AS (
    SELECT materialization.attempt_id, array_agg(own.key) AS keys
    FROM assets_app_assetpartition AS own
    JOIN assets_app_materialization AS materialization
        ON materialization.partition_id = own.id AND materialization.version = own.version
    WHERE own.asset_id = %(asset)s AND own.identity = %(identity)s
      AND own.key = ANY(%(keys)s::text[]) AND own.version > 0
    GROUP BY materialization.attempt_id
)
SELECT own_attempt.keys, partition.asset_id, min(partition.window_start),
       array_agg(partition.key ORDER BY partition.window_start, partition.segment, partition.id),
       (SELECT run.partition_count FROM assets_app_runattempt AS attempt
        JOIN assets_app_run AS run ON run.id = attempt.run_id
            WHERE attempt.id = own_attempt.attempt_id)
FROM own_attempt
JOIN assets_app_attemptinput AS read ON read.attempt_id = own_attempt.attempt_id
JOIN assets_app_assetpartition AS partition
    ON partition.id = read.partition_id AND partition.version > read.version
GROUP BY own_attempt.attempt_id, own_attempt.keys, partition.asset_id
UNION ALL
SELECT ARRAY[own.key], come.asset_id, min(come.window_start),
       array_agg(come.key ORDER BY come.window_start, come.segment, come.id), 1
FROM assets_app_assetpartition AS own
JOIN assets_app_materialization AS materialization
    ON materialization.partition_id = own.id AND materialization.version = own.version
JOIN assets_app_lateinput AS late
    ON late.run_id = materialization.run_id AND late.key = own.key AND late.reason = 'missing'
CROSS JOIN LATERAL ({come}) AS come
WHERE own.asset_id = %(asset)s AND own.identity = %(identity)s
  AND own.key = ANY(%(keys)s::text[]) AND own.version > 0
GROUP BY own.key, come.asset_id
ORDER BY 2, 1
"""


@dataclass(frozen=True, slots=True)
class Newer:
    """The newest of the upstream partitions that changed since, and the number of further ones."""

    asset: Asset
    key: str
    more: int = 0

    @property
    def text(self) -> str:
        """``hourly 2024-07-01T03:00Z and 2 more are newer``."""
        name = self.name
        return f"{name} and {self.more:,} more are newer" if self.more else f"{name} is newer"

    @property
    def name(self) -> str:
        """The upstream asset and the partition."""
        label = label_of(self.asset.definition, self.key)
        return f"{self.asset.name} {label}" if self.key else self.asset.name


@dataclass(frozen=True, slots=True)
class _Change:
    """The changes of one upstream asset since an attempt for these keys had read the asset."""

    keys: Sequence[str]
    upstream_id: int
    since: datetime | None
    changed_keys: Sequence[str]
    # Whether the run of the attempt has several partitions.
    shared: bool


def newer_inputs(asset: Asset, keys: Sequence[str]) -> dict[str, Newer]:
    """Return the newer inputs of the stale partitions among these keys: one statement for all.

    A second statement reads the upstream assets, where a partition is stale.
    """
    changes = _changes(asset, keys)
    if not changes:
        return {}
    edges = AssetDependency.objects.filter(downstream=asset).select_related(
        "upstream__partition_definition"
    )
    by_upstream = {edge.upstream_id: edge for edge in edges}
    newer_by_key: dict[str, Newer] = {}
    for change in changes:
        edge = by_upstream.get(change.upstream_id)
        if edge is not None:
            # Of several upstream assets the first one is named: the page of the partition names
            # all.
            for key, newer in _explained(asset, edge, change):
                newer_by_key.setdefault(key, newer)
    return newer_by_key


def _changes(asset: Asset, keys: Sequence[str]) -> list[_Change]:
    with connection.cursor() as cursor:
        values: dict[str, Any] = {
            "asset": asset.pk, "identity": asset.identity, "keys": list(keys),
        }  # fmt: skip
        cursor.execute(_NEWER.format(come=come_since("materialization.attempt_id")), values)
        return [
            _Change(own_keys, upstream_id, since, changed_keys, count > 1)
            for own_keys, upstream_id, since, changed_keys, count in cursor.fetchall()
        ]


def _explained(
    asset: Asset, dependency: AssetDependency, change: _Change
) -> Iterator[tuple[str, Newer]]:
    """Yield the newer inputs by key.

    Of a run of several partitions, the mapping decides which inputs concern each partition, unless
    all need the same.
    """
    changed_keys = change.changed_keys
    upstream = dependency.upstream.definition
    downstream = asset.definition
    is_one = downstream is None or upstream is None
    edge = None if is_one or not change.shared else edge_without_bounds(dependency, asset)
    if edge is None or not edge.depends_on_own_window or downstream is None or upstream is None:
        newest = Newer(dependency.upstream, changed_keys[-1], len(changed_keys) - 1)
        yield from ((key, newest) for key in change.keys)
        return
    now = database_now()
    edge = replace(edge, since=change.since or now, until=now)
    changed = slicewise.PartitionSet.of(upstream, list(still_known(upstream, changed_keys)))
    for key in still_known(downstream, change.keys):
        concerned = changed & edge.needed([key])
        if concerned:
            yield key.text, Newer(dependency.upstream, concerned[-1].text, len(concerned) - 1)

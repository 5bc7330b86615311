"""Which slices are stale: something they were made from has been made again since.

Derived from versions, never marked: the attempt that made a slice kept the versions of what it read
(AttemptInput), and a slice is stale while one of these is higher now. What was not there yet when
it was made does not make it stale.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.utils import timezone

import slicewise
from assets_app.models import Asset, AssetDependency
from assets_app.queries.keys import still_known
from partitions_app.labels import label_of
from partitions_app.rules import goes_by_windows, mapping_of

# Runs of several partitions read for all of them at once, so keys are gathered by attempt.
_NEWER = """
WITH made AS (
    SELECT made.attempt_id, array_agg(own.key) AS keys
    FROM assets_app_assetpartition AS own
    JOIN assets_app_materialization AS made
        ON made.slice_id = own.id AND made.version = own.version
    WHERE own.asset_id = %(asset)s AND own.identity = %(identity)s
      AND own.key = ANY(%(keys)s::text[]) AND own.version > 0
    GROUP BY made.attempt_id
)
SELECT made.keys, piece.asset_id, min(piece.window_start),
       array_agg(piece.key ORDER BY piece.window_start, piece.segment, piece.id),
       (SELECT run.partition_count FROM assets_app_runattempt AS attempt
        JOIN assets_app_run AS run ON run.id = attempt.run_id WHERE attempt.id = made.attempt_id)
FROM made
JOIN assets_app_attemptinput AS read ON read.attempt_id = made.attempt_id
JOIN assets_app_assetpartition AS piece
    ON piece.id = read.slice_id AND piece.version > read.version
GROUP BY made.attempt_id, made.keys, piece.asset_id
ORDER BY piece.asset_id, made.attempt_id
"""


@dataclass(frozen=True, slots=True)
class Newer:
    """The newest of the upstream partitions that changed since, and how many more there are."""

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
        """The asset and its partition."""
        label = label_of(self.asset.definition, self.key)
        return f"{self.asset.name} {label}" if self.key else self.asset.name


@dataclass(frozen=True, slots=True)
class _Change:
    """What changed of one upstream asset since an attempt that made these keys had read it."""

    keys: Sequence[str]
    upstream_id: int
    since: datetime | None
    pieces: Sequence[str]
    # Of how many partitions the attempt's run was.
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
    found: dict[str, Newer] = {}
    for change in changes:
        edge = by_upstream.get(change.upstream_id)
        if edge is not None:
            # Of two upstream assets the first one is named: its page names all.
            for key, newer in _explained(asset, edge, change):
                found.setdefault(key, newer)
    return found


def _changes(asset: Asset, keys: Sequence[str]) -> list[_Change]:
    with connection.cursor() as cursor:
        cursor.execute(_NEWER, {"asset": asset.pk, "identity": asset.identity, "keys": list(keys)})
        return [
            _Change(own, upstream_id, since, pieces, count > 1)
            for own, upstream_id, since, pieces, count in cursor.fetchall()
        ]


def _explained(asset: Asset, edge: AssetDependency, change: _Change) -> Iterator[tuple[str, Newer]]:
    """Of a run of several partitions, what each of them was made from is a matter of mapping,
    unless all need the same.
    """
    upstream, pieces = edge.upstream.definition, change.pieces
    is_one = asset.definition is None or upstream is None
    if is_one or not change.shared or not goes_by_windows(mapping_of(edge.mapping)):
        newest = Newer(edge.upstream, pieces[-1], len(pieces) - 1)
        yield from ((key, newest) for key in change.keys)
        return
    changed = slicewise.PartitionSet.of(upstream, list(still_known(upstream, pieces)))
    for key in still_known(asset.definition, change.keys):
        concerned = changed & _needed(edge, asset.definition, key, change.since)
        if concerned:
            yield key.text, Newer(edge.upstream, concerned[-1].text, len(concerned) - 1)


def _needed(
    edge: AssetDependency, downstream: Any, key: Any, since: datetime | None
) -> slicewise.PartitionSet:
    now = timezone.now()
    return slicewise.upstream_partitions(
        downstream, edge.upstream.definition, [key], mapping_of(edge.mapping),
        since=since or now, until=now,
    )  # fmt: skip

"""Staleness of partitions: an input has been materialized again since the partition was.

Staleness is derived from versions, never marked: the attempt that materialized a partition recorded
the versions of the inputs (AttemptInput), and the partition is stale while one of these inputs has
a higher version now. An upstream partition that was missing at that time does not make the
partition stale, unless the schedule made the partition without waiting for it (a late input).
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from django.db import connection

import slicewise
from assets_app.models import Asset, AssetDependency
from assets_app.queries.edges import edge_without_bounds
from assets_app.queries.keys import known_partitions
from assets_app.queries.late_inputs import come_since
from partitions_app.edges import Edge
from partitions_app.labels import label_of

# So many keys are sent at once: a statement for the keys of hundreds of assets takes seconds, and
# hundreds of megabytes.
_MOST_SENT = 20_000
# A run of several partitions reads the inputs of all at once, so keys are grouped by attempt.
_NEWER = """
WITH own AS (
    SELECT partition.asset_id, partition.key, materialization.run_id, materialization.attempt_id
    FROM unnest(%(assets)s::bigint[], %(identities)s::text[], %(keys)s::text[])
        AS requested(asset_id, identity, key)
    JOIN assets_app_assetpartition AS partition ON partition.asset_id = requested.asset_id
        AND partition.identity = requested.identity AND partition.key = requested.key
        AND partition.version > 0
    JOIN assets_app_materialization AS materialization
        ON materialization.partition_id = partition.id
          AND materialization.version = partition.version
), own_attempt AS (
    SELECT asset_id, attempt_id, array_agg(key) AS keys FROM own GROUP BY asset_id, attempt_id
)
SELECT own_attempt.asset_id, own_attempt.keys, partition.asset_id,
       array_agg(partition.key ORDER BY partition.window_start, partition.segment, partition.id),
       (SELECT run.partition_count FROM assets_app_runattempt AS attempt
        JOIN assets_app_run AS run ON run.id = attempt.run_id
            WHERE attempt.id = own_attempt.attempt_id)
FROM own_attempt
JOIN assets_app_attemptinput AS read ON read.attempt_id = own_attempt.attempt_id
JOIN assets_app_assetpartition AS partition
    ON partition.id = read.partition_id AND partition.version > read.version
GROUP BY own_attempt.asset_id, own_attempt.attempt_id, own_attempt.keys, partition.asset_id
UNION ALL
SELECT own.asset_id, ARRAY[own.key], come.asset_id,
       array_agg(come.key ORDER BY come.window_start, come.segment, come.id), 1
FROM own
JOIN assets_app_lateinput AS late
    ON late.run_id = own.run_id AND late.key = own.key AND late.reason = 'missing'
CROSS JOIN LATERAL ({come}) AS come
GROUP BY own.asset_id, own.key, come.asset_id
ORDER BY 1, 3, 2
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


class _Mapped(NamedTuple):
    """The changed upstream partitions, the stale partitions that need some of these, and the edge
    within the time of the changes.
    """

    edge: Edge
    changed: slicewise.PartitionSet
    stale: slicewise.PartitionSet


@dataclass(frozen=True)
class _Change:
    """The changes of one upstream asset since an attempt for these keys had read the asset.

    ``edge`` is the mapping that decides which changes concern each partition of the attempt's run;
    None where all changes concern all partitions.
    """

    keys: Sequence[str]
    upstream: Asset
    changed_keys: Sequence[str]
    edge: Edge | None

    def stale_keys(self) -> Iterable[str]:
        """Return the keys of the stale partitions, by arithmetic of sets."""
        return self.keys if self.edge is None else (key.text for key in self._mapped.stale)

    def newer(self, explained: Container[str]) -> Iterator[tuple[str, Newer]]:
        """Yield the newer inputs of the stale partitions by key, without the explained keys."""
        if self.edge is None:
            newest = Newer(self.upstream, self.changed_keys[-1], len(self.changed_keys) - 1)
            yield from ((key, newest) for key in self.keys)
            return
        edge, changed, stale = self._mapped
        keys = [key for key in stale if key.text not in explained]
        for key, concerned in _by_key(edge, keys, changed):
            yield key.text, Newer(self.upstream, concerned[-1].text, len(concerned) - 1)

    @cached_property
    def _mapped(self) -> _Mapped:
        edge = self.edge
        assert edge is not None  # noqa: S101  (the callers have checked)
        changed = known_partitions(edge.upstream, self.changed_keys)
        if hull := changed.hull:
            # For needs of all of time.
            edge = replace(edge, since=hull.start, until=hull.end)
        stale = edge.needing(changed, known_partitions(edge.downstream, self.keys))
        return _Mapped(edge, changed, stale)


@dataclass(frozen=True, slots=True)
class ChangedInputs:
    """The inputs of some partitions that changed since the partitions were materialized."""

    _changes: Sequence[_Change]

    def stale_keys(self) -> frozenset[str]:
        """Return the keys of the stale partitions: however many there are, sets are mapped."""
        return frozenset(key for change in self._changes for key in change.stale_keys())

    def newer(self) -> dict[str, Newer]:
        """Return the newer inputs of the stale partitions by key, which takes some arithmetic for
        each stale partition.
        """
        newer_by_key: dict[str, Newer] = {}
        for change in self._changes:
            # Of several upstream assets the first one is named: the page of the partition names
            # all.
            for key, newer in change.newer(newer_by_key):
                newer_by_key.setdefault(key, newer)
        return newer_by_key


def newer_inputs(asset: Asset, keys: Sequence[str]) -> dict[str, Newer]:
    """Return the newer inputs of the stale partitions among these keys: one statement for all.

    A second statement reads the upstream assets, where a partition is stale.
    """
    return changed_inputs(asset, keys).newer()


def stale_among(asset: Asset, keys: Sequence[str]) -> frozenset[str]:
    """Return the stale partitions among these keys, by the statements of ``newer_inputs``."""
    return changed_inputs(asset, keys).stale_keys()


def stale_among_all(keys_by_asset: Mapping[Asset, Sequence[str]]) -> dict[int, frozenset[str]]:
    """Return the stale partitions among these keys by asset id, by the statements of
    ``newer_inputs``, for up to 20,000 keys of any number of assets at once.
    """
    stale: dict[int, frozenset[str]] = {}
    # The changed inputs of many assets are large, and are forgotten with their group.
    for group in _groups(keys_by_asset):
        for asset_id, changes in _changes(group).items():
            keys = ChangedInputs(changes).stale_keys()
            stale[asset_id] = stale.get(asset_id, frozenset()) | keys
    return stale


def changed_inputs(asset: Asset, keys: Sequence[str]) -> ChangedInputs:
    """Return the changed inputs of the partitions of these keys: one statement for 20,000 keys, and
    a second one for the upstream assets, where a partition is perhaps stale.
    """
    groups = _groups({asset: keys})
    changes = [change for group in groups for change in _changes(group).get(asset.pk, ())]
    return ChangedInputs(changes)


def _groups(keys_by_asset: Mapping[Asset, Sequence[str]]) -> Iterator[dict[Asset, list[str]]]:
    """Yield the keys in groups, each of which one statement reads."""
    requested = ((asset, key) for asset, keys in keys_by_asset.items() for key in keys)
    while pairs := list(islice(requested, _MOST_SENT)):
        group: dict[Asset, list[str]] = {}
        for asset, key in pairs:
            group.setdefault(asset, []).append(key)
        yield group


def _changes(keys_by_asset: Mapping[Asset, Sequence[str]]) -> dict[int, list[_Change]]:
    """Return the changes of upstream assets by asset id, for the assets that have some."""
    rows = _rows(keys_by_asset)
    if not rows:
        return {}
    edges = AssetDependency.objects.filter(downstream__in=keys_by_asset)
    by_pair = {
        (dependency.downstream_id, dependency.upstream_id): dependency
        for dependency in edges.select_related("upstream__partition_definition")
    }
    assets = {asset.pk: asset for asset in keys_by_asset}
    changes: dict[int, list[_Change]] = defaultdict(list)
    for asset_id, own_keys, upstream_id, changed_keys, count in rows:
        if dependency := by_pair.get((asset_id, upstream_id)):
            edge = _deciding_edge(dependency, assets[asset_id]) if count > 1 else None
            changes[asset_id].append(_Change(own_keys, dependency.upstream, changed_keys, edge))
    return changes


def _rows(
    keys_by_asset: Mapping[Asset, Sequence[str]],
) -> list[tuple[int, list[str], int, list[str], int]]:
    """Return the id of an asset, keys of one attempt, the id of an upstream asset, the keys of the
    upstream asset's changed partitions, and the number of partitions of the attempt's run.
    """
    requested = [(asset, key) for asset, keys in keys_by_asset.items() for key in keys]
    values: dict[str, Any] = {
        "assets": [asset.pk for asset, _ in requested],
        "identities": [asset.identity for asset, _ in requested],
        "keys": [key for _, key in requested],
    }
    with connection.cursor() as cursor:
        cursor.execute(_NEWER.format(come=come_since("own.attempt_id")), values)
        rows: list[tuple[int, list[str], int, list[str], int]] = cursor.fetchall()
    return rows


def _deciding_edge(dependency: AssetDependency, asset: Asset) -> Edge | None:
    """Return the edge if partitions of one run have different inputs by the mapping."""
    if asset.definition is None or dependency.upstream.definition is None:
        return None
    edge = edge_without_bounds(dependency, asset)
    return edge if edge.depends_on_own_window else None


def _by_key(
    edge: Edge, keys: Sequence[slicewise.PartitionKey], changed: slicewise.PartitionSet
) -> Iterator[tuple[slicewise.PartitionKey, slicewise.PartitionSet]]:
    """Yield the changed upstream partitions that each key needs, where there are any.

    The keys are halved again and again, so that a set of scattered changes is not compared as a
    whole with the need of each key.
    """
    concerned = changed & edge.needed(keys)
    if not concerned:
        return
    if len(keys) == 1:
        yield keys[0], concerned
        return
    half = len(keys) // 2
    for half_of_keys in (keys[:half], keys[half:]):
        yield from _by_key(edge, half_of_keys, concerned)

"""Inputs that were missing when a partition was materialized, by the inputs that the attempt read.

A schedule records late inputs (`late_inputs`). A backfill or a person materializes partitions
without inputs too: the inputs of the attempt tell which partitions existed.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from assets_app.models import Asset, AssetDependency, AssetPartition, AttemptInput, Materialization
from assets_app.queries.edges import edge_without_bounds, with_time_since
from partitions_app.edges import Edge
from partitions_app.labels import label_of
from slicewise.partitions import is_runtime

# A partition that needs more of an input is not compared while a page loads; nor are further inputs
# of a partition that needs more of all inputs.
_MOST_NEEDED = 10_000
_MOST_OF_ALL_INPUTS = 20_000
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class MissingInput:
    """An input asset with needed partitions that the attempt did not have: the first labels, and
    the number of partitions.
    """

    asset: Asset
    labels: tuple[str, ...]
    partition_count: int

    @property
    def more(self) -> int:
        """The number of missing partitions beside the named ones."""
        return self.partition_count - len(self.labels)


def missing_inputs_of(
    asset: Asset,
    partition: AssetPartition,
    materialization: Materialization,
    now: datetime,
    explained: Collection[int] = (),
) -> list[MissingInput]:
    """Return the inputs that were missing when an attempt materialized a partition: two statements,
    and a third one where the attempt read no needed partition of an upstream asset.

    Inputs that the run's code mapped in another way, or whose partitions are defined in another way
    since, are left out, and so are the upstream assets with the ids ``explained``. Not compared are
    inputs of which more than 10,000 partitions are needed, and needs of all inputs beyond 20,000.
    """
    version, attempt_id = materialization.producer_version, materialization.attempt_id
    if version is None or attempt_id is None or partition.identity != asset.identity:
        return []
    spec = version.spec
    dependencies = AssetDependency.objects.filter(downstream=asset, inlet=True).select_related(
        "upstream__partition_definition"
    )
    edges_by_upstream = {
        dependency.upstream: edge_without_bounds(dependency, asset)
        for dependency in dependencies.order_by("pk")
        if dependency.upstream_id not in explained
        and dependency.upstream.name in spec.inlets
        and spec.mappings.get(dependency.upstream.name) == dependency.mapping
    }
    needed_by_upstream: dict[Asset, list[str]] = {}
    room = _MOST_OF_ALL_INPUTS
    for upstream, edge in edges_by_upstream.items():
        if keys := _needed(edge, partition.key, now, min(_MOST_NEEDED, room)):
            needed_by_upstream[upstream] = keys
            room -= len(keys)
    if not needed_by_upstream:
        return []
    read_keys = _read_keys(attempt_id, needed_by_upstream)
    unread = [upstream for upstream in needed_by_upstream if upstream.pk not in read_keys]
    redefined_ids = _redefined_since(attempt_id, unread)
    missing_inputs = (
        _missing_input(upstream, keys, read_keys.get(upstream.pk, set()))
        for upstream, keys in needed_by_upstream.items()
        if upstream.pk not in redefined_ids
    )
    return [missing_input for missing_input in missing_inputs if missing_input is not None]


def _needed(edge: Edge, key: str, now: datetime, room: int) -> list[str]:
    """Return the keys that a partition needs, if these were the same when the run began, and are no
    more than there is room for.
    """
    # Of all of upstream time a later run needs more; further keys are found at run time.
    is_open = edge.reads_whatever_exists or edge.needs_all_of_time
    if is_open or (edge.upstream is not None and is_runtime(edge.upstream)):
        return []
    try:
        needed = with_time_since(edge, None, now).needed_by_texts([key])
    except ValueError:
        return []
    return [needed_key.text for needed_key in needed] if len(needed) <= room else []


def _read_keys(
    attempt_id: int, needed_by_upstream: Mapping[Asset, Sequence[str]]
) -> dict[int, set[str]]:
    """Return the needed keys that the attempt read, by upstream asset.

    The run may have read inputs for thousands of other partitions: these are not looked at.
    """
    inputs = [
        _inputs_of(attempt_id, upstream)
        .filter(partition__identity=upstream.identity, partition__key__in=keys)
        .values_list("partition__asset", "partition__key")
        for upstream, keys in needed_by_upstream.items()
    ]
    read_keys: dict[int, set[str]] = {}
    for asset_id, key in _together(inputs):
        read_keys.setdefault(asset_id, set()).add(key)
    return read_keys


def _redefined_since(attempt_id: int, upstream: Sequence[Asset]) -> set[int]:
    """Return the upstream assets of which the attempt read partitions of another definition.

    An attempt reads the partitions of an asset by one definition.
    """
    if not upstream:
        return set()
    # Two ranges of an index: "not equal" would go through all partitions of the asset.
    inputs = [
        _inputs_of(attempt_id, asset)
        .filter(**{f"partition__identity__{lookup}": asset.identity})
        .values_list("partition__asset")[:1]
        for asset in upstream
        for lookup in ("lt", "gt")
    ]
    return {asset_id for (asset_id,) in _together(inputs)}


def _inputs_of(attempt_id: int, upstream: Asset) -> QuerySet[AttemptInput]:
    return AttemptInput.objects.filter(attempt=attempt_id, partition__asset=upstream)


def _together(rows: Sequence[QuerySet[AttemptInput, Any]]) -> QuerySet[AttemptInput, Any]:
    """Return the rows of several selects: one statement, in which each select has its own plan."""
    return rows[0].union(*rows[1:], all=True)


def _missing_input(
    upstream: Asset, keys: Sequence[str], read_keys: Collection[str]
) -> MissingInput | None:
    missing_keys = [key for key in keys if key not in read_keys]
    labels = tuple(label_of(upstream.definition, key) for key in missing_keys[:_MOST_NAMED])
    return MissingInput(upstream, labels, len(missing_keys)) if missing_keys else None

"""Inputs that were missing when a partition was materialized, by the inputs that the attempt read.

A schedule records late inputs (`late_inputs`). A backfill or a person materializes partitions
without inputs too: the inputs of the attempt tell which partitions existed.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from assets_app.models import Asset, AssetDependency, AssetPartition, AttemptInput, Materialization
from assets_app.queries.edges import edge_without_bounds, with_time_since
from partitions_app.edges import Edge
from partitions_app.labels import label_of
from slicewise.partitions import is_runtime

# A partition that needs more is not compared while a page loads.
_MOST_NEEDED = 10_000
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
    """Return the inputs that were missing when an attempt materialized a partition; two statements.

    Inputs that the run's code mapped in another way, or whose partitions are defined in another way
    since, are left out, and so are the upstream assets with the ids ``explained``.
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
    needed_by_upstream = {
        upstream: keys
        for upstream, edge in edges_by_upstream.items()
        if (keys := _needed(edge, partition.key, now))
    }
    if not needed_by_upstream:
        return []
    read = AttemptInput.objects.filter(
        attempt=attempt_id, partition__asset__in=needed_by_upstream
    ).values_list("partition__asset", "partition__identity", "partition__key")
    read_keys: dict[int, set[tuple[str, str]]] = {}
    for asset_id, identity, key in read:
        read_keys.setdefault(asset_id, set()).add((identity, key))
    missing_inputs = (
        _missing_input(upstream, keys, read_keys.get(upstream.pk, set()))
        for upstream, keys in needed_by_upstream.items()
    )
    return [missing_input for missing_input in missing_inputs if missing_input is not None]


def _needed(edge: Edge, key: str, now: datetime) -> list[str]:
    """Return the keys that a partition needs, if these were the same when the run began."""
    # Of all of upstream time a later run needs more; further keys are found at run time.
    is_open = edge.reads_whatever_exists or edge.needs_all_of_time
    if is_open or (edge.upstream is not None and is_runtime(edge.upstream)):
        return []
    try:
        needed = with_time_since(edge, None, now).needed_by_texts([key])
    except ValueError:
        return []
    return [needed_key.text for needed_key in needed] if len(needed) <= _MOST_NEEDED else []


def _missing_input(
    upstream: Asset, keys: list[str], read_keys: Collection[tuple[str, str]]
) -> MissingInput | None:
    identity = upstream.identity
    if any(read_identity != identity for read_identity, _ in read_keys):
        return None
    missing_keys = [key for key in keys if (identity, key) not in read_keys]
    labels = tuple(label_of(upstream.definition, key) for key in missing_keys[:_MOST_NAMED])
    return MissingInput(upstream, labels, len(missing_keys)) if missing_keys else None

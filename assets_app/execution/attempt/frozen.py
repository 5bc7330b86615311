"""Frozen definitions of upstream assets, which a backfill's runs use to its end.

A definition is frozen when the backfill is accepted, or retried with the newest code.
"""

from collections.abc import Iterable, Mapping
from copy import copy

from assets_app.models import Asset, FrozenUpstream, ProducerVersion, RunGroup
from partitions_app.models import PartitionDefinition

FrozenDefinition = PartitionDefinition | None


def freeze_upstream(
    group: RunGroup,
    versions: Iterable[ProducerVersion],
    definitions: Mapping[str, FrozenDefinition],
) -> None:
    """Store the definitions of the versions' upstream assets.

    ``definitions`` are by the names of assets; other assets get the definitions in force now.
    """
    names_by_version = {version.pk: set(version.spec.upstream_names) for version in versions}
    names = {name for some in names_by_version.values() for name in some}
    assets = list(
        Asset.objects.select_related("partition_definition")
        .defer("partition_definition__spec")
        .filter(name__in=names)
    )
    rows = [
        FrozenUpstream(
            group=group,
            producer_version_id=version_id,
            asset=asset,
            partition_definition=definitions.get(asset.name, asset.partition_definition),
        )
        for version_id, own_names in names_by_version.items()
        for asset in assets
        if asset.name in own_names
    ]
    FrozenUpstream.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=("group", "producer_version", "asset"),
        update_fields=("partition_definition",),
    )


def frozen_definitions(group_id: int, version_id: int) -> dict[int, FrozenDefinition]:
    """Return the frozen definitions of a version's upstream assets, by the ids of the assets."""
    rows = FrozenUpstream.objects.select_related("partition_definition")
    frozen = rows.filter(group=group_id, producer_version=version_id)
    return {row.asset_id: row.partition_definition for row in frozen}


def all_frozen_definitions(group_id: int) -> dict[int, dict[int, FrozenDefinition]]:
    """Return the frozen definitions of a group, by the ids of versions and upstream assets."""
    rows = FrozenUpstream.objects.select_related("partition_definition").filter(group=group_id)
    frozen: dict[int, dict[int, FrozenDefinition]] = {}
    for row in rows:
        frozen.setdefault(row.producer_version_id, {})[row.asset_id] = row.partition_definition
    return frozen


def as_frozen(asset: Asset, definitions: Mapping[int, FrozenDefinition]) -> Asset:
    """Return the asset with its frozen definition, if there is one. The result is for reading
    alone.
    """
    if asset.pk not in definitions:
        return asset
    frozen_asset = copy(asset)
    frozen_asset.partition_definition = definitions[asset.pk]
    return frozen_asset

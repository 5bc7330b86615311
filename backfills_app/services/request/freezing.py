"""The code version that a backfill uses for each of its assets, from the request to the end."""

from collections.abc import Iterable, Sequence
from typing import Any

import slicewise
from assets_app.execution.attempt.frozen import freeze_upstream
from assets_app.execution.queue.waiting import waits_for_past
from assets_app.execution.request.requests import params_given, require_producer
from assets_app.models import Asset, BundleVersion, ProducerVersion, RunGroup
from backfills_app.models import BackfillAsset, BackfillOrder
from backfills_app.services.partitions.outlets import names_of
from partitions_app.models import PartitionDefinition
from partitions_app.rules import identity_of
from slicewise_server.web.request_errors import InvalidRequest

_SHORTEST_DIGEST = 4


def code_version(assets: Sequence[Asset], text: str) -> BundleVersion | None:
    """Return the version that a number or the beginning of a digest names, of a bundle of these
    assets.

    None for an empty text, which stands for the newest version. Raises InvalidRequest on
    ``code_version``.
    """
    if not text:
        return None
    bundles = {asset.bundle_id for asset in assets}
    versions = BundleVersion.objects.filter(bundle__in=bundles).defer("archive")
    version = versions.filter(pk=int(text)).first() if _is_number(text) else None
    if version is None and len(text) >= _SHORTEST_DIGEST:
        similar_versions = list(versions.filter(digest__startswith=text.lower())[:2])
        if len(similar_versions) > 1:
            raise InvalidRequest(
                {
                    "code_version": f"Several versions of {names_of(assets)} begin with {text}: say"
                    " more."
                }
            )
        version = similar_versions[0] if similar_versions else None
    if version is None:
        raise InvalidRequest(
            {
                "code_version": f"There is no version {text!r} of the files that declare"
                f" {names_of(assets)}: give its number, or the first digits of its digest."
            }
        )
    return version


def requested_params(asset_row: BackfillAsset) -> dict[str, Any]:
    """Return the params of one of a backfill's assets that the request set: the values that differ
    from the values in the frozen code.
    """
    return params_given(asset_row.producer_version.definition.get("params") or {}, asset_row.params)


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) < 19


def frozen_version(asset: Asset, bundle_version: BundleVersion | None) -> ProducerVersion:
    """Return the asset's code in a bundle version; None stands for the version in force.

    Raises InvalidRequest on ``asset`` for an asset without a function here, and on ``code_version``
    where that version does not declare the asset.
    """
    current = require_producer(asset)
    if bundle_version is None or bundle_version.pk == current.bundle_version_id:
        return current
    versions = ProducerVersion.objects.filter(
        producer=asset.producer_id, bundle_version=bundle_version
    )
    # The same files may have been in force twice, with a row for each time.
    version = versions.order_by("-id").first()
    if version is None or asset.name not in version.outlets:
        raise InvalidRequest(
            {
                "code_version": f"Version {bundle_version.pk} ({bundle_version.digest[:12]})"
                f" does not declare {asset.name}."
            }
        )
    return version


def definition_of(asset: Asset, version: ProducerVersion) -> slicewise.PartitionDefinition | None:
    """Return the partition definition that a version gives the asset; None without partitions.

    A definition that is in force is read only once, since a list of segments may be long.
    """
    return rule_of(asset, version.partition_of(asset.name))


def rule_of(asset: Asset, spec: dict[str, Any] | None) -> slicewise.PartitionDefinition | None:
    """Return the asset's partition definition with that spec; None without partitions."""
    row = asset.partition_definition
    if row is not None and row.spec == spec:
        definition: slicewise.PartitionDefinition = row.definition
        return definition
    return PartitionDefinition.rule_of(spec or None)


def freeze_definitions(group: RunGroup, asset_rows: Iterable[BackfillAsset]) -> None:
    """Store the partition definitions of the upstream assets: for assets in the backfill the
    definitions by which the backfill numbers partitions, for other assets the definitions in force.
    """
    asset_rows = list(asset_rows)
    definitions: dict[str, PartitionDefinition | None] = {}
    for asset_row in asset_rows:
        spec = asset_row.partition
        if spec is None:
            spec = asset_row.producer_version.partition_of(asset_row.asset.name)
        row = PartitionDefinition.of(spec) if spec else None
        definitions |= dict.fromkeys(asset_row.producer_version.outlets, row)
    freeze_upstream(group, [asset_row.producer_version for asset_row in asset_rows], definitions)


def freeze_definitions_in_force(group: RunGroup, asset_rows: Iterable[BackfillAsset]) -> None:
    """Store the partition definitions in force of all upstream assets, assets in the backfill
    included: partitions made with the newest code need the upstream partitions of these
    definitions.
    """
    freeze_upstream(group, [asset_row.producer_version for asset_row in asset_rows], {})


def require_same_partitioning(asset: Asset, version: ProducerVersion) -> None:
    """Refuse a version that partitions the asset differently: such partitions have
    other windows.
    """
    if identity_of(definition_of(asset, version)) != asset.identity:
        raise InvalidRequest(
            {
                "code_version": f"That version cuts {asset.name} into other partitions than those"
                " that it has now."
            }
        )


def require_order(
    order: str, versions: Iterable[tuple[Asset, ProducerVersion]], *, field: str = "order"
) -> None:
    """Refuse an order in which partitions would wait for later partitions."""
    names = [asset.name for asset, version in versions if waits_for_past(version)]
    if names and order != BackfillOrder.OLDEST:
        raise InvalidRequest(
            {
                field: f"With depends_on_past ({', '.join(names)}) the oldest partitions are made"
                " first: order is oldest."
            }
        )

"""The code and the partition definition that a backfill uses for an asset, from the request to the
end.
"""

from typing import Any

import slicewise
from assets_app.execution.request.requests import checked_strategy, params_given, require_producer
from assets_app.models import Asset, BundleVersion, ProducerVersion
from backfills_app.models import BackfillAsset
from backfills_app.services.partitions.frozen_assets import FrozenAsset, outlets_of
from backfills_app.services.request.backfill_request import BackfillRequest
from partitions_app.models import PartitionDefinition
from partitions_app.rules import identity_of
from slicewise_server.web.request_errors import InvalidRequest


def freeze_asset(
    asset: Asset, request: BackfillRequest, bundle_version: BundleVersion | None
) -> FrozenAsset:
    """Return an asset with its code in a bundle version; None stands for the version in force.

    Raises InvalidRequest on ``asset`` for an asset without a function here, and on ``code_version``
    where that version does not declare the asset, or partitions the asset differently.
    """
    version = require_producer(asset)
    if bundle_version is not None and bundle_version.pk != version.bundle_version_id:
        version = _version_of(asset, bundle_version)
    strategy, spec = version.spec.strategy, version.spec.partition_of(asset.name)
    present = asset.definition
    definition = PartitionDefinition.rule_of(spec, in_force=asset.partition_definition)
    require_same_partitioning(asset, definition)
    declared = version.spec.params
    given_params = {name: value for name, value in request.params.items() if name in declared}
    return FrozenAsset(
        asset=asset,
        version=version,
        definition=definition,
        present=present,
        outlets=outlets_of(asset, version),
        strategy=checked_strategy(request.strategy, default=strategy),
        params={**declared, **given_params},
    )


def _version_of(asset: Asset, bundle_version: BundleVersion) -> ProducerVersion:
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


def require_same_partitioning(
    asset: Asset, definition: slicewise.PartitionDefinition | None
) -> None:
    """Refuse a version whose definition partitions the asset differently: such partitions have
    other windows.
    """
    if identity_of(definition) != asset.identity:
        raise InvalidRequest(
            {
                "code_version": f"That version cuts {asset.name} into other partitions than those"
                " that it has now."
            }
        )


def requested_params(asset_row: BackfillAsset) -> dict[str, Any]:
    """Return the params of one of a backfill's assets that the request set: the values that differ
    from the values in the frozen code.
    """
    return params_given(asset_row.producer_version.spec.params, asset_row.params)

"""A request with the chosen assets and the assets upstream, each frozen once: with the code and the
partition definition that a backfill uses for the asset to the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import slicewise
from assets_app.execution.request.param_types import with_declared_types
from assets_app.execution.request.requests import (
    checked_strategy,
    params_given,
    refuse_unknown_params,
    require_producer,
)
from assets_app.models import Asset, BundleVersion, ProducerVersion
from backfills_app.models import BackfillAsset
from backfills_app.services.partitions.frozen_assets import (
    FrozenAsset,
    by_outlet,
    outlets_of,
    reads_of,
    refuse_too_many_assets,
)
from backfills_app.services.partitions.outlets import names_of
from backfills_app.services.request.backfill_request import BackfillRequest
from backfills_app.services.request.ordering import circle_of, in_order
from partitions_app.models import PartitionDefinition
from partitions_app.rules import identity_of
from slicewise_server.web.request_errors import FieldErrors, InvalidRequest
from slicewise_server.web.typed_ids import is_id

_SHORTEST_DIGEST = 4


@dataclass(frozen=True, eq=False, kw_only=True)
class FrozenRequest:
    """A request as of one moment, with frozen assets.

    ``chosen`` are the chosen assets in the order of the request; ``upstream`` are the assets
    upstream of the chosen ones, at any distance, if the request includes these; ``in_order`` are
    all of these assets, each after the assets upstream. ``refused`` are sentences on assets that
    are left out.
    """

    request: BackfillRequest
    at: datetime
    bundle_version: BundleVersion | None
    chosen: Sequence[FrozenAsset] = ()
    upstream: Sequence[FrozenAsset] = ()
    in_order: Sequence[FrozenAsset] = ()
    refused: Sequence[str] = ()


def freeze_chosen(
    request: BackfillRequest, request_time: datetime, errors: FieldErrors
) -> FrozenRequest:
    """Freeze the chosen assets of a request; errors that leave the request readable are added to
    ``errors``.

    Of several assets that one function writes, the first is taken. Assets of a group or with a tag
    that no function here writes are left out. Raises InvalidRequest if such an asset was named, or
    if no asset is left.
    """
    bundle_version: BundleVersion | None = None
    with errors:
        bundle_version = _code_version(request.assets, request.code_version)
    with errors:
        checked_strategy(request.strategy, default="partition")
    if "strategy" in errors.messages:
        request = replace(request, strategy=None)
    chosen: list[FrozenAsset] = []
    refused: list[str] = []
    refusals: dict[str, list[str]] = {}
    outlet_names: set[str] = set()
    for asset in request.assets:
        if asset.name in outlet_names:
            continue
        try:
            chosen_asset = freeze_asset(asset, request, bundle_version)
        except InvalidRequest as error:
            if len(request.assets) == 1:
                raise
            refused.append(f"{asset.name} is skipped: {error}")
            for name, messages in error.errors.items():
                field = request.chosen_field if name == "asset" else name
                refusals.setdefault(field, []).extend(messages)
            continue
        chosen.append(chosen_asset)
        outlet_names |= {outlet.name for outlet in chosen_asset.outlets}
    if refusals and (request.is_named or not chosen):
        raise InvalidRequest(refusals)
    declared = {name for asset in chosen for name in asset.version.spec.params}
    with errors:
        refuse_unknown_params(declared, request.params)
    return FrozenRequest(
        request=request,
        at=request_time,
        bundle_version=bundle_version,
        chosen=chosen,
        refused=refused,
    )


def include_upstream(frozen: FrozenRequest) -> FrozenRequest:
    """Freeze all assets upstream of the chosen ones as well, if the request includes these.

    Assets that another program writes, or that no function here writes, are left out. Raises
    InvalidRequest on too many assets, and on assets that read each other: no order materializes all
    of them.
    """
    if frozen.request.upstream:
        frozen = _with_upstream(frozen)
    reads = reads_of([*frozen.chosen, *frozen.upstream])
    circle = circle_of(reads)
    if not circle:
        return replace(frozen, in_order=in_order(reads))
    is_of_chosen = all(asset in frozen.chosen for asset in circle)
    names = " -> ".join(asset.asset.name for asset in circle)
    raise InvalidRequest(
        {
            frozen.request.chosen_field if is_of_chosen else "upstream": (
                f"{names}: these assets depend on each other, so no order is possible."
                " Backfill them one after the other."
            )
        }
    )


def _with_upstream(frozen: FrozenRequest) -> FrozenRequest:
    upstream: list[FrozenAsset] = []
    refused: list[str] = []
    external_assets: list[Asset] = []
    outlet_names = set(by_outlet(frozen.chosen))
    visited_names = set(outlet_names)
    frontier = list(frozen.chosen)
    while frontier:
        names = {name for asset in frontier for name in asset.upstream_names} - visited_names
        visited_names |= names
        rows = Asset.objects.select_related("partition_definition", "producer__current_version")
        frontier = []
        for row in rows.filter(name__in=names).order_by("name"):
            if row.name in outlet_names:
                continue
            if row.active and row.producer is None:
                external_assets.append(row)
                continue
            try:
                upstream_asset = freeze_asset(row, frozen.request, frozen.bundle_version)
            except InvalidRequest as error:
                refused.append(f"{row.name} is skipped: {error}")
                continue
            frontier.append(upstream_asset)
            outlet_names |= {outlet.name for outlet in upstream_asset.outlets}
        visited_names |= outlet_names
        upstream += frontier
        refuse_too_many_assets(len(frozen.chosen) + len(upstream), "upstream")
    if external_assets:
        verb, pronoun = ("is", "it") if len(external_assets) == 1 else ("are", "them")
        refused.append(
            f"{names_of(external_assets)} {verb} skipped: another program writes {pronoun}."
        )
    return replace(frozen, upstream=upstream, refused=[*frozen.refused, *refused])


def _code_version(assets: Sequence[Asset], text: str) -> BundleVersion | None:
    """Return the version that a number or the beginning of a digest names, of a bundle of these
    assets.

    None for an empty text, which stands for the newest version. Raises InvalidRequest on
    ``code_version``.
    """
    if not text:
        return None
    bundles = {asset.bundle_id for asset in assets}
    versions = BundleVersion.objects.filter(bundle__in=bundles).defer("archive")
    version = versions.filter(pk=int(text)).first() if is_id(text) else None
    if version is None and len(text) >= _SHORTEST_DIGEST:
        similar_versions = list(versions.filter(digest__startswith=text.lower())[:2])
        if len(similar_versions) > 1:
            raise InvalidRequest(
                {
                    "code_version": f"Several versions of {names_of(assets)} begin with {text}:"
                    " give more digits."
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
    given_params = with_declared_types(
        {name: value for name, value in request.params.items() if name in declared}, declared
    )
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
                "code_version": f"That version partitions {asset.name} differently from the present"
                " definition."
            }
        )


def requested_params(asset_row: BackfillAsset) -> dict[str, Any]:
    """Return the params of one of a backfill's assets that the request set: the values that differ
    from the values in the frozen code.
    """
    return params_given(asset_row.producer_version.spec.params, asset_row.params)

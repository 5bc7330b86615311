"""The assets of a request, before the partitions of each asset are known."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assets_app.execution.attempt.frozen import upstream_names
from assets_app.execution.request.requests import checked_strategy, refuse_unknown_params
from assets_app.models import Asset, BundleVersion
from backfills_app.models import AssetRole
from backfills_app.services.partitions.outlets import names_of, outlets_of
from backfills_app.services.partitions.scopes import AssetScope
from backfills_app.services.request.backfill_request import BackfillRequest
from backfills_app.services.request.freezing import (
    definition_of,
    frozen_version,
    require_same_partitioning,
)
from backfills_app.services.request.naming import refuse_too_many_assets
from backfills_app.services.request.ordering import circle_of
from slicewise_server.web.request_errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Drafts:
    """Assets without partitions, and sentences on the assets that are left out."""

    parts: Sequence[AssetScope]
    refused: Sequence[str]


def draft(
    request: BackfillRequest, asset: Asset, bundle_version: BundleVersion | None, role: AssetRole
) -> AssetScope:
    """Return an asset with the code that is frozen for the request.

    Raises InvalidRequest if no function here writes the asset, or if the frozen version partitions
    the asset differently.
    """
    version = frozen_version(asset, bundle_version)
    require_same_partitioning(asset, version)
    declared: dict[str, Any] = version.definition.get("params") or {}
    given_params = {name: value for name, value in request.params.items() if name in declared}
    return AssetScope(
        asset=asset,
        version=version,
        definition=definition_of(asset, version),
        terms=(),
        outlets=outlets_of(asset, version),
        strategy=checked_strategy(request.strategy, default=version.strategy),
        params={**declared, **given_params},
        role=role,
    )


def chosen_drafts(request: BackfillRequest, bundle_version: BundleVersion | None) -> Drafts:
    """Return the chosen assets; of several assets that one function writes, the first.

    Assets of a group or with a tag that no function here writes are left out. Raises InvalidRequest
    if such an asset was named, or if no asset is left.
    """
    scopes: list[AssetScope] = []
    refused: list[str] = []
    errors: dict[str, list[str]] = {}
    outlet_names: set[str] = set()
    for asset in request.assets:
        if asset.name in outlet_names:
            continue
        try:
            scope = draft(request, asset, bundle_version, AssetRole.CHOSEN)
        except InvalidRequest as error:
            if len(request.assets) == 1:
                raise
            refused.append(f"{asset.name} is skipped: {error}")
            for name, messages in error.errors.items():
                field = request.chosen_field if name == "asset" else name
                errors.setdefault(field, []).extend(messages)
            continue
        scopes.append(scope)
        outlet_names |= {outlet.name for outlet in scope.outlets}
    if errors and (request.is_named or not scopes):
        raise InvalidRequest(errors)
    return Drafts(scopes, refused)


def upstream_drafts(
    request: BackfillRequest, chosen: Sequence[AssetScope], bundle_version: BundleVersion | None
) -> Drafts:
    """Return all assets upstream of the chosen ones, at any distance, without the chosen ones.

    Assets that another program writes, or that ``draft`` refuses, are left out.
    """
    upstream_scopes: list[AssetScope] = []
    refused: list[str] = []
    external_assets: list[Asset] = []
    outlet_names = set(by_outlet(chosen))
    visited_names = set(outlet_names)
    frontier = list(chosen)
    while frontier:
        names = {
            name for scope in frontier for name in upstream_names(scope.version)
        } - visited_names
        visited_names |= names
        rows = Asset.objects.select_related("partition_definition", "producer__current_version")
        frontier = []
        for asset in rows.filter(name__in=names).order_by("name"):
            if asset.name in outlet_names:
                continue
            if asset.active and asset.producer is None:
                external_assets.append(asset)
                continue
            try:
                scope = draft(request, asset, bundle_version, AssetRole.UPSTREAM)
            except InvalidRequest as error:
                refused.append(f"{asset.name} is skipped: {error}")
                continue
            frontier.append(scope)
            outlet_names |= {outlet.name for outlet in scope.outlets}
        visited_names |= outlet_names
        upstream_scopes += frontier
        refuse_too_many_assets(len(chosen) + len(upstream_scopes), "upstream")
    if external_assets:
        verb, pronoun = ("is", "it") if len(external_assets) == 1 else ("are", "them")
        refused.append(
            f"{names_of(external_assets)} {verb} skipped: something else writes {pronoun}."
        )
    return Drafts(upstream_scopes, refused)


def by_outlet(scopes: Iterable[AssetScope]) -> dict[str, AssetScope]:
    """Return the assets by the names of all outlets of their functions."""
    return {outlet.name: scope for scope in scopes for outlet in scope.outlets}


def reads_of(scopes: Sequence[AssetScope]) -> dict[AssetScope, set[AssetScope]]:
    """Return, for each asset, the other assets among these that it reads, or that schedule it."""
    makers = by_outlet(scopes)
    return {
        scope: {makers[name] for name in upstream_names(scope.version) if name in makers} - {scope}
        for scope in scopes
    }


def refuse_circle(
    request: BackfillRequest, reads: Mapping[AssetScope, Iterable[AssetScope]]
) -> None:
    """Refuse assets that read each other: no order materializes all of them."""
    circle = circle_of({scope: list(upstream_scopes) for scope, upstream_scopes in reads.items()})
    if not circle:
        return
    is_of_chosen = all(scope.role == AssetRole.CHOSEN for scope in circle)
    field = request.chosen_field if is_of_chosen else "upstream"
    names = " -> ".join(scope.asset.name for scope in circle)
    raise InvalidRequest(
        {
            field: f"{names}: these read each other, so that no order makes all of them."
            " Backfill them one after the other."
        }
    )


def refuse_params(request: BackfillRequest, chosen: Sequence[AssetScope]) -> None:
    """Refuse params that none of the chosen assets declares."""
    declared = {name for scope in chosen for name in scope.version.definition.get("params") or {}}
    refuse_unknown_params(declared, request.params)

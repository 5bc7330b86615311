"""The assets of a request before it is known which of their partitions it comes to."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accounts_app.errors import InvalidRequest
from assets_app.execution.frozen import upstream_names
from assets_app.execution.requests import checked_strategy, refuse_unknown_params
from assets_app.models import Asset, BundleVersion
from backfills_app.models import AssetRole
from backfills_app.services.freezing import definition_of, frozen_version, require_same_cut
from backfills_app.services.naming import refuse_too_many_assets
from backfills_app.services.ordering import circle_of
from backfills_app.services.outlets import names_of, outlets_of
from backfills_app.services.parts import Part
from backfills_app.services.requests import BackfillRequest


@dataclass(frozen=True, slots=True)
class Drafts:
    """Parts without partitions, and sentences on the assets that are left out."""

    parts: Sequence[Part]
    refused: Sequence[str]


def draft(
    request: BackfillRequest, asset: Asset, bundle_version: BundleVersion | None, role: AssetRole
) -> Part:
    """Return an asset as the code makes it that is frozen for the request.

    InvalidRequest where nothing here makes it, or another version cuts it otherwise.
    """
    version = frozen_version(asset, bundle_version)
    require_same_cut(asset, version)
    declared: dict[str, Any] = version.definition.get("params") or {}
    given = {name: value for name, value in request.params.items() if name in declared}
    return Part(
        asset=asset,
        version=version,
        definition=definition_of(asset, version),
        terms=(),
        outlets=outlets_of(asset, version),
        strategy=checked_strategy(request.strategy, default=version.strategy),
        params={**declared, **given},
        role=role,
    )


def chosen_drafts(request: BackfillRequest, bundle_version: BundleVersion | None) -> Drafts:
    """Return the chosen assets, of those that one function makes the first.

    Those of a group or with a tag that nothing here makes are left out; InvalidRequest where one
    was named, or none is left.
    """
    parts: list[Part] = []
    refused: list[str] = []
    errors: dict[str, list[str]] = {}
    seen: set[str] = set()
    for asset in request.assets:
        if asset.name in seen:
            continue
        try:
            part = draft(request, asset, bundle_version, AssetRole.CHOSEN)
        except InvalidRequest as error:
            if len(request.assets) == 1:
                raise
            refused.append(f"{asset.name} is skipped: {error}")
            for name, said in error.errors.items():
                field = request.chosen_field if name == "asset" else name
                errors.setdefault(field, []).extend(said)
            continue
        parts.append(part)
        seen |= {outlet.name for outlet in part.outlets}
    if errors and (request.is_named or not parts):
        raise InvalidRequest(errors)
    return Drafts(parts, refused)


def upstream_drafts(
    request: BackfillRequest, chosen: Sequence[Part], bundle_version: BundleVersion | None
) -> Drafts:
    """Return all assets that the chosen ones are made from, however far up, without them.

    What something else writes, or the frozen version does not make, is left out.
    """
    found: list[Part] = []
    refused: list[str] = []
    outside: list[Asset] = []
    made = set(by_outlet(chosen))
    seen = set(made)
    frontier = list(chosen)
    while frontier:
        names = {name for part in frontier for name in upstream_names(part.version)} - seen
        seen |= names
        rows = Asset.objects.select_related("partition_definition", "producer__current_version")
        frontier = []
        for asset in rows.filter(name__in=names).order_by("name"):
            if asset.name in made:
                continue
            if asset.active and asset.producer is None:
                outside.append(asset)
                continue
            try:
                part = draft(request, asset, bundle_version, AssetRole.UPSTREAM)
            except InvalidRequest as error:
                refused.append(f"{asset.name} is skipped: {error}")
                continue
            frontier.append(part)
            made |= {outlet.name for outlet in part.outlets}
        seen |= made
        found += frontier
        refuse_too_many_assets(len(chosen) + len(found), "upstream")
    if outside:
        are, them = ("is", "it") if len(outside) == 1 else ("are", "them")
        refused.append(f"{names_of(outside)} {are} skipped: something else writes {them}.")
    return Drafts(found, refused)


def by_outlet(parts: Iterable[Part]) -> dict[str, Part]:
    """Return the parts by the names of all that their functions make."""
    return {outlet.name: part for part in parts for outlet in part.outlets}


def reads_of(parts: Sequence[Part]) -> dict[Part, set[Part]]:
    """Return for each of the parts those among them that it reads, or that schedule it."""
    makers = by_outlet(parts)
    return {
        part: {makers[name] for name in upstream_names(part.version) if name in makers} - {part}
        for part in parts
    }


def refuse_circle(request: BackfillRequest, reads: Mapping[Part, Iterable[Part]]) -> None:
    """Refuse assets that read each other: none of them can be made before the others."""
    circle = circle_of({part: list(others) for part, others in reads.items()})
    if not circle:
        return
    is_of_chosen = all(part.role == AssetRole.CHOSEN for part in circle)
    field = request.chosen_field if is_of_chosen else "upstream"
    names = " -> ".join(part.asset.name for part in circle)
    raise InvalidRequest(
        {
            field: f"{names}: these read each other, so that no order makes all of them."
            " Backfill them one after the other."
        }
    )


def refuse_params(request: BackfillRequest, chosen: Sequence[Part]) -> None:
    """Refuse params that none of the chosen assets declares."""
    declared = {name for part in chosen for name in part.version.definition.get("params") or {}}
    refuse_unknown_params(declared, request.params)

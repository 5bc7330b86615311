"""The downstream assets of a request, upstream before downstream, each with the partitions that
follow from its mapping and its definition.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from assets_app.models import Asset, AssetDependency
from backfills_app.models import AssetRole
from backfills_app.services.partitions.frozen_assets import (
    FrozenAsset,
    edges_of,
    refuse_too_many_assets,
)
from backfills_app.services.partitions.outlets import names_of
from backfills_app.services.partitions.scopes import (
    ScopeDraft,
    beginning_of,
)
from backfills_app.services.request.backfill_request import ALL, NONE, BackfillRequest
from backfills_app.services.request.frozen_request import FrozenRequest, freeze_asset
from backfills_app.services.request.ordering import in_order
from backfills_app.services.request.periods import Hull, Terms
from slicewise_server.web.request_errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Following:
    """The downstream assets that a backfill materializes, and sentences on the assets left out."""

    drafts: Sequence[ScopeDraft]
    refused: Sequence[str]


def follow(
    frozen: FrozenRequest,
    chosen: Sequence[ScopeDraft],
    upstream: Sequence[ScopeDraft],
    hull: Hull,
) -> Following:
    """Return the assets downstream of the chosen ones that the request includes.

    An asset that is not included still passes on which partitions follow. An asset that is
    materialized anyway, as ``upstream`` of a chosen one, gets the partitions that follow as well.
    Raises InvalidRequest on ``downstream`` for a name that does not follow, or that no function
    here writes.
    """
    if frozen.request.downstream == NONE:
        return Following((), ())
    outlets = [outlet for draft in chosen for outlet in draft.frozen.outlets]
    below = _downstream_assets(outlets)
    included = _included(frozen.request, chosen, outlets, below)
    walk = _Walk(frozen, chosen, hull)
    upstream_drafts = {outlet.name: draft for draft in upstream for outlet in draft.frozen.outlets}
    refused: list[str] = []
    followers: list[ScopeDraft] = []
    for asset in _assets_in_order(below, included):
        is_named = included is not None and asset.name in included
        is_kept = included is None or is_named
        if asset.name in upstream_drafts:
            walk.extend(upstream_drafts[asset.name], is_kept=is_kept)
            continue
        try:
            draft = walk.go_to(asset)
        except InvalidRequest as error:
            if is_named:
                raise InvalidRequest({"downstream": f"{asset.name}: {error}"}) from error
            if included is None:
                refused.append(f"{asset.name} is skipped: {error}")
            continue
        if is_kept:
            followers.append(draft)
            if not draft.terms:
                refused.append(_explain_empty(draft))
    refuse_too_many_assets(len(chosen) + len(upstream) + len(followers), "downstream")
    return Following(followers, refused)


class _Walk:
    """A walk downstream from the chosen assets that records which partitions of each
    asset follow.
    """

    def __init__(self, frozen: FrozenRequest, chosen: Sequence[ScopeDraft], hull: Hull) -> None:
        self._frozen, self._hull = frozen, hull
        # By asset, the partitions that follow each selection term of the chosen assets.
        self._number = max(len(draft.terms) for draft in chosen)
        self._seen: dict[FrozenAsset, Terms] = {draft.frozen: list(draft.terms) for draft in chosen}
        self._drafts = {draft.frozen: draft for draft in chosen}

    def go_to(self, asset: Asset) -> ScopeDraft:
        """Return an asset with the partitions that follow, after the walk has been to all assets
        upstream.
        """
        draft = ScopeDraft(
            freeze_asset(asset, self._frozen.request, self._frozen.bundle_version),
            AssetRole.DOWNSTREAM,
            [],
        )
        draft.terms = self._follow(draft)
        draft.keep_past(self._frozen.at)
        draft.drop_empty()
        return draft

    def extend(self, draft: ScopeDraft, *, is_kept: bool) -> None:
        """Add the partitions that follow to an asset that is materialized anyway, if ``is_kept``;
        otherwise only record these partitions.
        """
        followers = ScopeDraft(draft.frozen, draft.role, self._follow(draft))
        if is_kept:
            followers.keep_past(self._frozen.at)
            draft.terms += followers.terms
            draft.not_ended += followers.not_ended
            draft.drop_repeated()
            draft.drop_empty()
            if self._number == 1:
                # Without several listed terms, runs are made from all partitions together, as in
                # admission.
                draft.terms = [draft.whole]

    def _follow(self, draft: ScopeDraft) -> Terms:
        asset = draft.frozen
        edges = [
            edge
            for edge in edges_of(asset, list(self._seen), self._frozen.at, self._beginning)
            if edge.upstream_scope is not None
        ]
        draft.mapping = next((edge.mapping.to_json() for edge in edges if edge.mapping), None)
        earlier_terms = asset.nothing
        following_terms: Terms = []
        for number in range(self._number):
            following_term = asset.nothing
            for edge in edges:
                upstream = self._seen[edge.upstream_scope][number : number + 1]  # type: ignore[index]
                if upstream and upstream[0]:
                    following_term |= edge.following(upstream[0], self._hull.start, self._hull.end)
            following_terms.append(following_term - earlier_terms)
            earlier_terms |= following_term
        self._seen[asset], self._drafts[asset] = list(following_terms), draft
        return following_terms

    def _beginning(self, asset: FrozenAsset) -> datetime | None:
        return beginning_of(self._drafts[asset])


def _downstream_assets(outlets: Sequence[Asset]) -> dict[int, tuple[Asset, set[int]]]:
    """Return all assets downstream of some assets, by id, each with the ids of the assets upstream
    of it.
    """
    downstream_assets: dict[int, tuple[Asset, set[int]]] = {}
    frontier = {asset.pk for asset in outlets}
    outlet_ids = set(frontier)
    while frontier:
        edges = AssetDependency.objects.filter(
            upstream__in=frontier, downstream__active=True
        ).select_related("downstream__partition_definition", "downstream__producer")
        new_ids: set[int] = set()
        for edge in edges.order_by("downstream__name"):
            if edge.downstream_id in outlet_ids:
                continue
            if edge.downstream_id not in downstream_assets:
                downstream_assets[edge.downstream_id] = (edge.downstream, set())
                new_ids.add(edge.downstream_id)
            downstream_assets[edge.downstream_id][1].add(edge.upstream_id)
        frontier = new_ids
    return downstream_assets


def _included(
    request: BackfillRequest,
    chosen: Sequence[ScopeDraft],
    outlets: Sequence[Asset],
    below: dict[int, tuple[Asset, set[int]]],
) -> set[str] | None:
    """Return the names of the downstream assets that the request includes; None for all."""
    if request.downstream == ALL:
        return None
    names = {asset.name for asset, _ in below.values()}
    requested_names = set(request.downstream) - {outlet.name for outlet in outlets}
    unknown = sorted(requested_names - names)
    if unknown:
        follower_names = ", ".join(sorted(names)) or "none"
        followed = names_of([draft.frozen.asset for draft in chosen])
        raise InvalidRequest(
            {
                "downstream": f"{', '.join(unknown)} is not downstream of {followed}."
                f" Downstream: {follower_names}."
            }
        )
    return requested_names


def _assets_in_order(
    below: dict[int, tuple[Asset, set[int]]], included: set[str] | None
) -> Iterator[Asset]:
    """Yield one asset for each function, after all assets upstream of it.

    Of assets that read each other in a circle one comes first.
    """
    groups: dict[int, list[int]] = {}
    for asset_id, (asset, _) in below.items():
        groups.setdefault(asset.producer_id or -asset_id, []).append(asset_id)
    group_of = {asset_id: group for group, members in groups.items() for asset_id in members}
    upstream_groups = {
        group: {
            group_of[upstream_id]
            for asset_id in members
            for upstream_id in below[asset_id][1]
            if upstream_id in group_of
        }
        for group, members in groups.items()
    }
    for group in in_order(upstream_groups):
        members = [below[asset_id][0] for asset_id in groups[group]]
        named = [asset for asset in members if included and asset.name in included]
        yield (named or members)[0]


def _explain_empty(draft: ScopeDraft) -> str:
    name = draft.frozen.asset.name
    if draft.not_ended:
        return f"{name}: the downstream partitions have not ended yet."
    if draft.frozen.asset.finds_partitions:
        return f"{name}: no partitions yet; runs discover them."
    return f"{name}: no downstream partitions in this range."

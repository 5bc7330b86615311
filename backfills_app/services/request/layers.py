"""The downstream assets of a request, upstream before downstream, each with the partitions that
follow from its mapping and its definition.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import slicewise
from assets_app.models import Asset, AssetDependency, BundleVersion
from backfills_app.models import AssetRole
from backfills_app.services.choosing import ended_by
from backfills_app.services.drafts import by_outlet, draft
from backfills_app.services.partitions.cuts import in_current_definition
from backfills_app.services.partitions.outlets import names_of
from backfills_app.services.partitions.scopes import AssetScope, edges_of
from backfills_app.services.request.backfill_request import ALL, NONE, BackfillRequest
from backfills_app.services.request.naming import refuse_too_many_assets
from backfills_app.services.request.ordering import in_order
from backfills_app.services.request.periods import Hull, Terms
from slicewise_server.web.request_errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Following:
    """The downstream assets that a backfill materializes, and sentences on the assets left out."""

    parts: Sequence[AssetScope]
    refused: Sequence[str]


def follow(
    request: BackfillRequest,
    chosen: Sequence[AssetScope],
    upstream: Sequence[AssetScope],
    bundle_version: BundleVersion | None,
    hull: Hull,
    request_time: datetime,
) -> Following:
    """Return the assets downstream of the chosen ones that the request includes.

    An asset that is not included still passes on which partitions follow. An asset that is
    materialized anyway, as ``upstream`` of a chosen one, gets the partitions that follow as well.
    Raises InvalidRequest on ``downstream`` for a name that does not follow, or that no function
    here writes.
    """
    if request.downstream == NONE:
        return Following((), ())
    outlets = [outlet for scope in chosen for outlet in scope.outlets]
    below = _downstream_assets(outlets)
    included = _included(request, chosen, outlets, below)
    walk = _Walk(request, chosen, bundle_version, hull, request_time)
    upstream_scopes = by_outlet(upstream)
    refused: list[str] = []
    followers: list[AssetScope] = []
    for asset in _assets_in_order(below, included):
        is_named = included is not None and asset.name in included
        is_kept = included is None or is_named
        if asset.name in upstream_scopes:
            walk.extend(upstream_scopes[asset.name], is_kept=is_kept)
            continue
        try:
            scope = walk.go_to(asset)
        except InvalidRequest as error:
            if is_named:
                raise InvalidRequest({"downstream": f"{asset.name}: {error}"}) from error
            if included is None:
                refused.append(f"{asset.name} is skipped: {error}")
            continue
        if is_kept:
            followers.append(scope)
            if not scope.terms:
                refused.append(_explain_empty(scope))
    refuse_too_many_assets(len(chosen) + len(upstream) + len(followers), "downstream")
    return Following(followers, refused)


class _Walk:
    """A walk downstream from the chosen assets that records which partitions of each
    asset follow.
    """

    def __init__(
        self,
        request: BackfillRequest,
        chosen: Sequence[AssetScope],
        bundle_version: BundleVersion | None,
        hull: Hull,
        request_time: datetime,
    ) -> None:
        self._request, self._bundle_version, self._at = request, bundle_version, request_time
        self._hull = hull
        # By asset, the partitions that follow each selection term of the chosen assets.
        self._number = max(len(scope.terms) for scope in chosen)
        self._seen: dict[AssetScope, Terms] = {scope: list(scope.terms) for scope in chosen}

    def go_to(self, asset: Asset) -> AssetScope:
        """Return an asset with the partitions that follow, after the walk has been to all assets
        upstream.
        """
        scope = draft(self._request, asset, self._bundle_version, AssetRole.DOWNSTREAM)
        following_terms = self._follow(scope)
        scope.terms, scope.not_over = self._over(scope, following_terms)
        return scope

    def extend(self, scope: AssetScope, *, is_kept: bool) -> None:
        """Add the partitions that follow to an asset that is materialized anyway, if ``is_kept``;
        otherwise only record these partitions.
        """
        following_terms = self._follow(scope)
        if is_kept:
            ended_terms, not_over = self._over(scope, following_terms)
            scope.add_terms(ended_terms)
            if self._number == 1:
                # Without several listed terms, runs are made from all partitions together, as in
                # admission.
                scope.terms = (scope.whole,)
            scope.not_over += not_over

    def _over(
        self, scope: AssetScope, following_terms: Terms
    ) -> tuple[tuple[slicewise.PartitionSet, ...], int]:
        ended_terms = [ended_by(term, self._at) for term in following_terms]
        current_terms = tuple(
            current_term
            for term in ended_terms
            if (current_term := in_current_definition(scope.asset, term))
        )
        return current_terms, sum(map(len, following_terms)) - sum(map(len, ended_terms))

    def _follow(self, scope: AssetScope) -> Terms:
        edges = [edge for edge in edges_of(scope, list(self._seen), self._at) if edge.part]
        # The plan shows one of the mappings as the one by which the asset follows.
        scope.mapping = next((edge.mapping.to_json() for edge in edges if edge.mapping), None)
        earlier_terms = scope.nothing
        following_terms: Terms = []
        for number in range(self._number):
            following_term = scope.nothing
            for edge in edges:
                upstream = self._seen[edge.part][number : number + 1]  # type: ignore[index]
                if upstream and upstream[0]:
                    following_term |= edge.following(upstream[0], self._hull.start, self._hull.end)
            following_terms.append(following_term - earlier_terms)
            earlier_terms |= following_term
        self._seen[scope] = following_terms
        return following_terms


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
    chosen: Sequence[AssetScope],
    outlets: Sequence[Asset],
    below: dict[int, tuple[Asset, set[int]]],
) -> set[str] | None:
    """Return the names of the downstream assets that the request includes; None for all."""
    if request.downstream == ALL:
        return None
    names = {asset.name for asset, _ in below.values()}
    wanted = set(request.downstream) - {outlet.name for outlet in outlets}
    unknown = sorted(wanted - names)
    if unknown:
        follower_names = ", ".join(sorted(names)) or "nothing does"
        followed = names_of([scope.asset for scope in chosen])
        raise InvalidRequest(
            {
                "downstream": f"{', '.join(unknown)} does not follow {followed}."
                f" What follows it: {follower_names}."
            }
        )
    return wanted


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


def _explain_empty(scope: AssetScope) -> str:
    name = scope.asset.name
    if scope.not_over:
        return f"{name}: the downstream partitions have not ended yet."
    if scope.asset.finds_partitions:
        return f"{name}: no partitions yet; runs discover them."
    return f"{name}: no downstream partitions in this range."

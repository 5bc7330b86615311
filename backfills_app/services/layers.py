"""The assets that follow the chosen ones, upstream before downstream, each with the partitions
that its own mapping and its own definition say.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import slicewise
from accounts_app.errors import InvalidRequest
from assets_app.models import Asset, AssetDependency, BundleVersion
from backfills_app.models import AssetRole
from backfills_app.services.choosing import ended_by
from backfills_app.services.cuts import current_part
from backfills_app.services.drafts import by_outlet, draft
from backfills_app.services.naming import refuse_too_many_assets
from backfills_app.services.ordering import in_order
from backfills_app.services.outlets import names_of
from backfills_app.services.parts import Part, edges_of
from backfills_app.services.periods import Hull, Terms
from backfills_app.services.requests import ALL, NONE, BackfillRequest


@dataclass(frozen=True, slots=True)
class Following:
    """What is made beside the chosen assets, and sentences on what is not."""

    parts: Sequence[Part]
    refused: Sequence[str]


def follow(
    request: BackfillRequest,
    chosen: Sequence[Part],
    upstream: Sequence[Part],
    bundle_version: BundleVersion | None,
    hull: Hull,
    at: datetime,
) -> Following:
    """Return the assets downstream of the chosen ones that the request includes.

    An asset that is not included still hands on which partitions follow. One that is made anyway,
    as ``upstream`` of a chosen one, gets the partitions that follow as well. InvalidRequest on
    ``downstream`` for a name that does not follow, or that nothing here makes.
    """
    if request.downstream == NONE:
        return Following((), ())
    outlets = [outlet for part in chosen for outlet in part.outlets]
    below = _below(outlets)
    included = _included(request, chosen, outlets, below)
    walk = _Walk(request, chosen, bundle_version, hull, at)
    known = by_outlet(upstream)
    refused: list[str] = []
    kept: list[Part] = []
    for asset in _assets_in_order(below, included):
        is_named = included is not None and asset.name in included
        is_kept = included is None or is_named
        if asset.name in known:
            walk.extend(known[asset.name], is_kept=is_kept)
            continue
        try:
            part = walk.go_to(asset)
        except InvalidRequest as error:
            if is_named:
                raise InvalidRequest({"downstream": f"{asset.name}: {error}"}) from error
            if included is None:
                refused.append(f"{asset.name} is skipped: {error}")
            continue
        if is_kept:
            kept.append(part)
            if not part.terms:
                refused.append(_why_nothing(part))
    refuse_too_many_assets(len(chosen) + len(upstream) + len(kept), "downstream")
    return Following(kept, refused)


class _Walk:
    """Goes down from the chosen assets, and keeps which partitions of each asset follow."""

    def __init__(
        self,
        request: BackfillRequest,
        chosen: Sequence[Part],
        bundle_version: BundleVersion | None,
        hull: Hull,
        at: datetime,
    ) -> None:
        self._request, self._bundle_version, self._at = request, bundle_version, at
        self._hull = hull
        # Of each asset the partitions that follow each term of the chosen ones.
        self._number = max(len(part.terms) for part in chosen)
        self._seen: dict[Part, Terms] = {part: list(part.terms) for part in chosen}

    def go_to(self, asset: Asset) -> Part:
        """Return the asset, of which all that is upstream here has been gone to."""
        part = draft(self._request, asset, self._bundle_version, AssetRole.DOWNSTREAM)
        found = self._follow(part)
        part.terms, part.not_over = self._over(part, found)
        return part

    def extend(self, part: Part, *, is_kept: bool) -> None:
        """Go to an asset that is made anyway; what follows of it is made as well if it is kept."""
        found = self._follow(part)
        if is_kept:
            terms, not_over = self._over(part, found)
            part.add_terms(terms)
            if self._number == 1:
                # Nothing is listed: runs are cut from all of it, as admission does.
                part.terms = (part.whole,)
            part.not_over += not_over

    def _over(self, part: Part, found: Terms) -> tuple[tuple[slicewise.PartitionSet, ...], int]:
        over = [ended_by(term, self._at) for term in found]
        terms = tuple(each for term in over if (each := current_part(part.asset, term)))
        return terms, sum(map(len, found)) - sum(map(len, over))

    def _follow(self, part: Part) -> Terms:
        edges = [edge for edge in edges_of(part, list(self._seen), self._at) if edge.part]
        # By one of them it is said to follow, for whoever reads the plan.
        part.mapping = next((e.mapping.to_json() for e in edges if e.mapping), None)
        seen = part.nothing
        terms: Terms = []
        for number in range(self._number):
            term = part.nothing
            for edge in edges:
                upstream = self._seen[edge.part][number : number + 1]  # type: ignore[index]
                if upstream and upstream[0]:
                    term |= edge.following(upstream[0], self._hull.start, self._hull.end)
            terms.append(term - seen)
            seen |= term
        self._seen[part] = terms
        return terms


def _below(outlets: Sequence[Asset]) -> dict[int, tuple[Asset, set[int]]]:
    """All assets downstream of some, by id, each with the ids of those that it follows."""
    found: dict[int, tuple[Asset, set[int]]] = {}
    frontier = {asset.pk for asset in outlets}
    own = set(frontier)
    while frontier:
        edges = AssetDependency.objects.filter(
            upstream__in=frontier, downstream__active=True
        ).select_related("downstream__partition_definition", "downstream__producer")
        new: set[int] = set()
        for edge in edges.order_by("downstream__name"):
            if edge.downstream_id in own:
                continue
            if edge.downstream_id not in found:
                found[edge.downstream_id] = (edge.downstream, set())
                new.add(edge.downstream_id)
            found[edge.downstream_id][1].add(edge.upstream_id)
        frontier = new
    return found


def _included(
    request: BackfillRequest,
    chosen: Sequence[Part],
    outlets: Sequence[Asset],
    below: dict[int, tuple[Asset, set[int]]],
) -> set[str] | None:
    """The names that the request includes; None for all."""
    if request.downstream == ALL:
        return None
    names = {asset.name for asset, _ in below.values()}
    wanted = set(request.downstream) - {outlet.name for outlet in outlets}
    unknown = sorted(wanted - names)
    if unknown:
        known = ", ".join(sorted(names)) or "nothing does"
        followed = names_of([part.asset for part in chosen])
        raise InvalidRequest(
            {
                "downstream": f"{', '.join(unknown)} does not follow {followed}."
                f" What follows it: {known}."
            }
        )
    return wanted


def _assets_in_order(
    below: dict[int, tuple[Asset, set[int]]], included: set[str] | None
) -> Iterator[Asset]:
    """One asset for each function that makes some, after all that it follows.

    Of assets that read each other in a circle one comes first.
    """
    groups: dict[int, list[int]] = {}
    for pk, (asset, _) in below.items():
        groups.setdefault(asset.producer_id or -pk, []).append(pk)
    group_of = {pk: group for group, members in groups.items() for pk in members}
    waits = {
        group: {group_of[up] for pk in members for up in below[pk][1] if up in group_of}
        for group, members in groups.items()
    }
    for group in in_order(waits):
        members = [below[pk][0] for pk in groups[group]]
        named = [asset for asset in members if included and asset.name in included]
        yield (named or members)[0]


def _why_nothing(part: Part) -> str:
    name = part.asset.name
    if part.not_over:
        return f"{name}: the downstream partitions have not ended yet."
    if part.asset.finds_partitions:
        return f"{name}: no partitions yet; runs discover them."
    return f"{name}: no downstream partitions in this range."

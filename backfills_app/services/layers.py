"""The assets that follow the one asked for, upstream before downstream, each with the partitions
that its own mapping and its own definition say.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import slicewise
from accounts_app.errors import InvalidRequest
from assets_app.execution.requests import checked_strategy
from assets_app.models import Asset, AssetDependency, BundleVersion, ProducerVersion
from backfills_app.models import Backfill
from backfills_app.services.choosing import ended_by
from backfills_app.services.freezing import (
    current_part,
    definition_of,
    frozen_version,
    require_same_cut,
)
from backfills_app.services.parts import Part, edges_of
from backfills_app.services.requests import ALL, NONE, BackfillRequest

Terms = list[slicewise.PartitionSet]


@dataclass(frozen=True, slots=True)
class Following:
    """What is made beside the asset asked for, and sentences on what is not."""

    parts: Sequence[Part]
    refused: Sequence[str]


def outlets_of(asset: Asset, version: ProducerVersion) -> list[Asset]:
    """The asset, and those that its function makes with it."""
    names = [name for name in version.outlets if name != asset.name]
    if not names:
        return [asset]
    others = Asset.objects.select_related("partition_definition").filter(name__in=names)
    return [asset, *others]


def assets_made(backfill: Backfill) -> list[Asset]:
    """All that a backfill makes: its assets, and what their frozen functions make with them."""
    pieces = backfill.assets.select_related("asset", "producer_version")
    return [
        outlet
        for piece in pieces.defer("producer_version__source")
        for outlet in outlets_of(piece.asset, piece.producer_version)
    ] or [backfill.asset]


def follow(
    request: BackfillRequest, asked: Part, bundle_version: BundleVersion | None, at: datetime
) -> Following:
    """The assets downstream of the one asked for that the request includes.

    An asset that is not chosen still hands on which partitions follow. InvalidRequest on
    ``downstream`` for a name that does not follow, or that nothing here makes.
    """
    if request.downstream == NONE:
        return Following((), ())
    below = _below(asked.outlets)
    chosen = _chosen(request, asked, below)
    walk = _Walk(request, asked, bundle_version, at)
    refused: list[str] = []
    kept: list[Part] = []
    for asset in _in_order(asked, below, chosen):
        is_named = chosen is not None and asset.name in chosen
        try:
            part = walk.go_to(asset, [asked, *kept])
        except InvalidRequest as error:
            if is_named:
                raise InvalidRequest({"downstream": f"{asset.name}: {error}"}) from error
            if chosen is None:
                refused.append(f"{asset.name} is left out: {error}")
            continue
        if chosen is None or is_named:
            kept.append(part)
            if not part.whole:
                refused.append(_why_nothing(part))
    return Following(kept, refused)


class _Walk:
    """Goes down from the asset asked for, and keeps which partitions of each asset follow."""

    def __init__(
        self,
        request: BackfillRequest,
        asked: Part,
        bundle_version: BundleVersion | None,
        at: datetime,
    ) -> None:
        self._request, self._bundle_version, self._at = request, bundle_version, at
        hull = asked.whole.hull
        assert hull is not None  # noqa: S101  (only what has time is asked for)
        self._hull = hull
        # Of each asset the partitions that follow each term of the one asked for.
        self._seen: dict[Part, Terms] = {asked: list(asked.terms)}

    def go_to(self, asset: Asset, included: Collection[Part]) -> Part:
        """The asset, of which all that is upstream here has been gone to."""
        version = frozen_version(asset, self._bundle_version)
        require_same_cut(asset, version)
        declared: dict[str, Any] = version.definition.get("params") or {}
        given = {k: v for k, v in self._request.params.items() if k in declared}
        part = Part(
            asset=asset,
            version=version,
            definition=definition_of(asset, version),
            terms=(),
            outlets=outlets_of(asset, version),
            strategy=checked_strategy(self._request.strategy, default=version.strategy),
            params={**declared, **given},
        )
        found = self._following(part)
        self._seen[part] = found
        over = [ended_by(term, self._at) for term in found]
        part.terms = tuple(each for term in over if (each := current_part(asset, term)))
        part.not_over = sum(map(len, found)) - sum(map(len, over))
        part.edges = edges_of(part, included, self._at)
        return part

    def _following(self, part: Part) -> Terms:
        edges = [edge for edge in edges_of(part, list(self._seen), self._at) if edge.part]
        # By one of them it is said to follow, for whoever reads the plan.
        part.mapping = next((e.mapping.to_json() for e in edges if e.mapping), None)
        seen = part.nothing
        terms: Terms = []
        for number in range(len(next(iter(self._seen.values())))):
            term = part.nothing
            for edge in edges:
                upstream = self._seen[edge.part][number]  # type: ignore[index]
                if upstream:
                    term |= edge.following(upstream, self._hull.start, self._hull.end)
            terms.append(term - seen)
            seen |= term
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


def _chosen(
    request: BackfillRequest, asked: Part, below: dict[int, tuple[Asset, set[int]]]
) -> set[str] | None:
    """The names that the request includes; None for all."""
    if request.downstream == ALL:
        return None
    names = {asset.name for asset, _ in below.values()}
    wanted = set(request.downstream) - {outlet.name for outlet in asked.outlets}
    unknown = sorted(wanted - names)
    if unknown:
        known = ", ".join(sorted(names)) or "nothing does"
        raise InvalidRequest(
            {
                "downstream": f"{', '.join(unknown)} does not follow {asked.asset.name}."
                f" What follows it: {known}."
            }
        )
    return wanted


def _in_order(
    asked: Part, below: dict[int, tuple[Asset, set[int]]], chosen: set[str] | None
) -> Iterator[Asset]:
    """One asset for each function that makes some, after all that it follows.

    Of assets that read each other in a circle one comes first.
    """
    groups: dict[int, list[int]] = {}
    for pk, (asset, _) in below.items():
        groups.setdefault(asset.producer_id or -pk, []).append(pk)
    group_of = {pk: group for group, members in groups.items() for pk in members}
    waits = {
        group: {group_of[up] for pk in members for up in below[pk][1] if up in group_of} - {group}
        for group, members in groups.items()
    }
    while waits:
        free = next((group for group, others in waits.items() if not others), next(iter(waits)))
        del waits[free]
        for others in waits.values():
            others.discard(free)
        members = [below[pk][0] for pk in groups[free]]
        named = [asset for asset in members if chosen and asset.name in chosen]
        yield (named or members)[0]


def _why_nothing(part: Part) -> str:
    name = part.asset.name
    if part.not_over:
        return f"{name}: what follows there is not over yet."
    if part.asset.finds_partitions:
        return f"{name}: it finds its partitions at run time, and none are known yet."
    return f"{name}: it has no partition that follows."

"""The assets of a backfill: the partitions of each asset, its frozen code, and its
upstream needs.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import slicewise
from assets_app.execution.frozen import Cut, as_frozen
from assets_app.execution.requests import Strategy
from assets_app.models import Asset, AssetPartition, ProducerVersion
from backfills_app.models import AssetRole
from backfills_app.services.cuts import by_definition, in_present_definition
from backfills_app.services.positions import Positions
from partitions_app.edges import Edge, mapping_of
from slicewise.keys import WHOLE

Definition = slicewise.PartitionDefinition | None


@dataclass(eq=False, kw_only=True)
class AssetScope:
    """One asset of a backfill, with the partitions that the backfill covers.

    ``terms`` are these partitions in the order in which the request lists the partitions.
    ``outlets`` are the assets that the function writes: this asset, and assets written together
    with this one. ``layer`` is 1 if the asset needs no other asset of the backfill, otherwise one
    more than the highest layer of the assets that it needs.
    """

    asset: Asset
    version: ProducerVersion
    definition: Definition
    terms: tuple[slicewise.PartitionSet, ...]
    outlets: Sequence[Asset]
    strategy: Strategy
    params: dict[str, Any]
    role: str = AssetRole.CHOSEN
    layer: int = 1
    not_over: int = 0
    mapping: dict[str, Any] | None = None
    edges: "tuple[BackfillEdge, ...]" = ()

    @cached_property
    def whole(self) -> slicewise.PartitionSet:
        """All partitions of the asset that the backfill covers."""
        partitions = slicewise.PartitionSet(self.definition, ())
        for selection_term in self.terms:
            partitions |= selection_term
        return partitions

    @cached_property
    def places(self) -> Positions:
        """The positions of the partitions."""
        return Positions(self.whole)

    @property
    def selection(self) -> str:
        """The partitions as text of the selection grammar, term by term."""
        return "; ".join(term.text for term in self.terms)

    @property
    def nothing(self) -> slicewise.PartitionSet:
        """The empty set of partitions of this asset."""
        return slicewise.PartitionSet(self.definition, ())

    def add_terms(self, selection_terms: Iterable[slicewise.PartitionSet]) -> None:
        """Add partitions, term by term, after the partitions that the backfill already covers."""
        for selection_term in selection_terms:
            if new_partitions := selection_term - self.whole:
                self.terms = (*self.terms, new_partitions)
                del self.whole
                self.__dict__.pop("places", None)

    @property
    def upstream_parts(self) -> "list[AssetScope]":
        """The assets of this backfill that this asset needs partitions of."""
        return [edge.part for edge in self.edges if edge.part is not None]


@dataclass(frozen=True, eq=False, kw_only=True)
class BackfillEdge(Edge):
    """The need of an asset for partitions of one upstream asset, ``asset``.

    ``part`` is the upstream asset as this backfill covers it, None if the backfill does not
    materialize it. ``upstream`` is the definition by which the need is computed, ``present`` is the
    upstream definition in force, which may have changed since the request. ``part`` numbers
    partitions by the definition of the request, although a retry may need partitions of the
    definition in force.
    """

    asset: Asset
    present: Definition
    part: AssetScope | None = None

    @property
    def is_outdated(self) -> bool:
        """Whether the upstream asset is defined differently by now."""
        return self.upstream != self.present

    def removed(self, upstream: slicewise.PartitionSet) -> slicewise.PartitionSet:
        """Return the upstream partitions that the upstream asset no longer has."""
        remaining = in_present_definition(self.present, upstream)
        no_partitions = slicewise.PartitionSet(self.upstream, ())
        return no_partitions if remaining is upstream else upstream - remaining

    def of_part(self, needed: slicewise.PartitionSet) -> slicewise.PartitionSet:
        """Return the needed upstream partitions that this backfill covers, by the definition of
        ``part``.
        """
        assert self.part is not None  # noqa: S101  (called only where ``part`` is set)
        return by_definition(self.part.definition, needed) & self.part.whole

    def needing(
        self, upstream: slicewise.PartitionSet, chosen: slicewise.PartitionSet
    ) -> slicewise.PartitionSet:
        """Return the chosen downstream partitions that need some of the upstream partitions, which
        may be given by the definition of ``part``.
        """
        return super().needing(by_definition(self.upstream, upstream), chosen)


def join(scopes: Sequence[AssetScope], request_time: datetime) -> None:
    """Set the edges and the layer of each asset. The assets come upstream before downstream; an
    edge leads to an earlier asset of the backfill, or to an asset outside the backfill.
    """
    for number, scope in enumerate(scopes):
        scope.edges = edges_of(scope, scopes[:number], request_time)
        scope.layer = 1 + max((upstream.layer for upstream in scope.upstream_parts), default=0)


def edges_of(
    scope: AssetScope,
    scopes: Collection[AssetScope],
    request_time: datetime,
    cuts: Mapping[int, Cut] | None = None,
    *,
    beginning: datetime | None = None,
) -> tuple[BackfillEdge, ...]:
    """Return an edge for each asset that the frozen code of an asset reads or is scheduled by;
    ``scopes`` are the assets of this backfill that may be upstream.

    ``cuts`` are the frozen definitions of upstream assets. Other upstream assets are read by the
    definition in ``scopes``, or by the definition in force. ``beginning`` is the start of the time
    of ``scopes`` while the partitions are not known. An upstream asset is left out if another
    program writes it and no materialization of the asset was ever recorded: which of its partitions
    exist is unknown.
    """
    cuts = cuts or {}
    spec = scope.version.spec
    names = spec.upstream_names
    by_name = {
        outlet.name: (outlet, other_scope)
        for other_scope in scopes if other_scope is not scope
        for outlet in other_scope.outlets
    }  # fmt: skip
    outlet_names = {outlet.name for outlet in scope.outlets}
    outside = Asset.objects.select_related("partition_definition").filter(
        name__in=[name for name in names if name not in by_name and name not in outlet_names]
    )
    upstream: dict[str, tuple[Asset, AssetScope | None]] = {
        asset.name: (asset, None) for asset in outside
    }
    upstream |= {name: by_name[name] for name in names if name in by_name}
    mappings = spec.mappings
    edges = (
        _edge(scope, asset, upstream_scope, cuts, mappings.get(name), request_time, beginning)
        for name, (asset, upstream_scope) in upstream.items()
    )
    return tuple(edge for edge in edges if edge is not None)


def _edge(
    scope: AssetScope,
    asset: Asset,
    upstream_scope: AssetScope | None,
    cuts: Mapping[int, Cut],
    mapping: Mapping[str, Any] | None,
    request_time: datetime,
    beginning: datetime | None,
) -> BackfillEdge | None:
    upstream = as_frozen(asset, cuts)
    if (
        upstream_scope is None
        and asset.producer_id is None
        and not AssetPartition.objects.made_of(upstream).exists()
    ):
        return None
    if upstream_scope is not None and asset.pk not in cuts:
        definition = upstream_scope.definition
    else:
        definition = upstream.definition
    edge = BackfillEdge(
        asset=upstream,
        upstream=definition,
        present=asset.definition,
        downstream=scope.definition,
        mapping=mapping_of(mapping),
        part=upstream_scope,
        since=request_time,
        until=request_time,
    )
    if not edge.needs_all_of_time:
        return edge
    return replace(edge, since=_beginning(upstream, upstream_scope, request_time, beginning))


def _beginning(
    upstream: Asset,
    upstream_scope: AssetScope | None,
    request_time: datetime,
    beginning: datetime | None,
) -> datetime:
    """Return the start of an upstream asset's time: the start of the first partition on record, or
    in the backfill.
    """
    first = AssetPartition.objects.made_of(upstream).first_start()
    if (
        beginning is None
        and upstream_scope is not None
        and (hull := upstream_scope.whole.hull) is not None
    ):
        beginning = hull.start
    return min(start for start in (first, beginning, request_time) if start is not None)


def whole_of(definition: Definition) -> slicewise.PartitionSet:
    """Return the one partition of a definition without partitions."""
    return slicewise.PartitionSet.of(definition, [WHOLE])

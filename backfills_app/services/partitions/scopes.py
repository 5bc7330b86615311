"""The assets of a backfill: the partitions of each asset, its frozen code, and its
upstream needs.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import slicewise
from assets_app.execution.attempt.frozen import Cut, as_frozen, upstream_names
from assets_app.execution.request.requests import Strategy
from assets_app.models import Asset, AssetPartition, ProducerVersion
from backfills_app.models import AssetRole
from backfills_app.services.partitions.cuts import by_definition, in_present_definition
from backfills_app.services.partitions.positions import Positions
from partitions_app.rules import depends_on_own_window, mapping_of, needs_all_of_time
from slicewise.keys import WHOLE
from slicewise.mapping import WindowMapping, matching_segments, overlapping
from slicewise.partitions import WindowRange

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
    edges: "tuple[Edge, ...]" = ()

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


@dataclass(eq=False, kw_only=True)
class Edge:
    """The need of an asset for partitions of one upstream asset.

    ``part`` is the upstream asset as this backfill covers it, None if the backfill does not
    materialize it. ``definition`` is the upstream definition by which the need is computed,
    ``present`` is the upstream definition in force, which may have changed since the request.
    ``part`` numbers partitions by the definition of the request, although a retry may need
    partitions of the definition in force. ``since`` and ``until`` bound the upstream asset's time
    where all of that time, or the last of that time, is needed.
    """

    upstream: Asset
    definition: Definition
    present: Definition
    downstream: Definition
    mapping: slicewise.PartitionMapping | None
    part: AssetScope | None = None
    since: datetime
    until: datetime

    @property
    def reads_whatever_there_is(self) -> bool:
        """Whether an unpartitioned asset reads a partitioned one, so that holes do not matter (need
        rule 5).
        """
        return self.downstream is None and self.definition is not None and self.mapping is None

    def needed(self, chosen: slicewise.PartitionSet) -> slicewise.PartitionSet:
        """Return the upstream partitions that the chosen downstream partitions need."""
        return slicewise.upstream_partitions(
            self.downstream, self.definition, chosen, self.mapping,
            since=self.since, until=self.until,
        )  # fmt: skip

    @property
    def is_outdated(self) -> bool:
        """Whether the upstream asset is defined differently by now."""
        return self.definition != self.present

    def removed(self, upstream: slicewise.PartitionSet) -> slicewise.PartitionSet:
        """Return the upstream partitions that the upstream asset no longer has."""
        remaining = in_present_definition(self.present, upstream)
        no_partitions = slicewise.PartitionSet(self.definition, ())
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
        upstream = by_definition(self.definition, upstream)
        if not upstream or not chosen:
            return slicewise.PartitionSet(self.downstream, ())
        hull = chosen.hull
        return chosen & self.following(
            upstream, hull.start if hull else self.since, hull.end if hull else self.until
        )

    def following(
        self, upstream: slicewise.PartitionSet, since: datetime, until: datetime
    ) -> slicewise.PartitionSet:
        """Return the downstream partitions that need some of the upstream partitions.

        Where only the downstream asset has time, or all downstream windows need the same
        partitions, the result is bounded by ``since`` and ``until``.
        """
        if depends_on_own_window(self.mapping):
            return slicewise.downstream_partitions(
                self.definition, self.downstream, upstream, self.mapping, since=since, until=until
            )
        # Such a mapping reads the bounds for both sides: the last upstream window may well begin
        # before the first downstream window.
        followers = slicewise.downstream_partitions(
            self.definition, self.downstream, upstream, self.mapping,
            since=min(self.since, since), until=self.until,
        )  # fmt: skip
        return followers & slicewise.downstream_partitions(
            None, self.downstream, [WHOLE], since=since, until=until
        )

    def needing_nonexistent(
        self, chosen: slicewise.PartitionSet, lacks: Any
    ) -> slicewise.PartitionSet:
        """Return the chosen partitions that need the nonexistent upstream partitions ``lacks``,
        which name no excluded windows.
        """
        if not lacks:
            return slicewise.PartitionSet(self.downstream, ())
        if not depends_on_own_window(self.mapping):
            # With such a mapping all downstream partitions need the same upstream partitions.
            return chosen
        blocked = slicewise.PartitionSet(self.downstream, ())
        if lacks.segments:
            blocked |= self._of_lost_segments(chosen) & self._of_windows_needed(chosen, lacks)
        if lacks.spans:
            blocked |= chosen & slicewise.PartitionSet(
                self.downstream, self._of_lost_windows(chosen, lacks.spans)
            )
        return blocked

    def _of_lost_segments(self, chosen: slicewise.PartitionSet) -> slicewise.PartitionSet:
        match = matching_segments(self.downstream, self.definition, chosen.space)
        used_segments = frozenset().union(*(slab.segments for slab in chosen.slabs))
        lost_segments = frozenset(
            number for number in used_segments if match(frozenset({number}))[1]
        )
        slabs = (
            WindowRange(slab.first, slab.stop, slab.segments & lost_segments)
            for slab in chosen.slabs
        )
        return slicewise.PartitionSet(self.downstream, slabs)

    def _of_windows_needed(
        self, chosen: slicewise.PartitionSet, lacks: Any
    ) -> slicewise.PartitionSet:
        """Return the chosen partitions that need at least one upstream window which is not
        excluded: of excluded windows no segment is needed either.
        """
        times = [
            definition and definition.time_dimension
            for definition in (self.downstream, self.definition)
        ]
        downstream, upstream = times
        if downstream is None or upstream is None or not upstream.space.time.has_exclusions:
            return chosen
        windows = slicewise.PartitionSet(
            downstream, [slab._replace(segments=frozenset({0})) for slab in chosen.slabs]
        )
        needed = slicewise.upstream_partitions(downstream, upstream, windows, self.mapping)
        reading_windows = slicewise.downstream_partitions(
            upstream, downstream, needed, self.mapping
        )
        of_all_segments = chosen.space.segments.all
        slabs = [slab._replace(segments=of_all_segments) for slab in reading_windows.slabs]
        if needed.blocking.spans:
            slabs += self._of_lost_windows(chosen, needed.blocking.spans)
        return slicewise.PartitionSet(self.downstream, slabs)

    def _of_lost_windows(
        self, chosen: slicewise.PartitionSet, lost_windows: Sequence[slicewise.Interval]
    ) -> Iterator[WindowRange]:
        assert self.definition is not None  # noqa: S101  (windows belong to a definition)
        upstream, downstream = self.definition.space.time, chosen.space.time
        downstream_ranges = (
            self.mapping.downstream_windows
            if isinstance(self.mapping, WindowMapping)
            else overlapping
        )
        ticks = upstream.ticks
        firsts = [ticks.rank(span.first_second) for span in lost_windows]
        stops = [ticks.rank(span.stop_second) for span in lost_windows]
        for first, stop in downstream_ranges(upstream, (firsts, stops), downstream):
            yield WindowRange(*downstream.clip(first, stop), chosen.space.segments.all)


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
) -> tuple[Edge, ...]:
    """Return an edge for each asset that the frozen code of an asset reads or is scheduled by;
    ``scopes`` are the assets of this backfill that may be upstream.

    ``cuts`` are the frozen definitions of upstream assets. Other upstream assets are read by the
    definition in ``scopes``, or by the definition in force. ``beginning`` is the start of the time
    of ``scopes`` while the partitions are not known. An upstream asset is left out if another
    program writes it and no materialization of the asset was ever recorded: which of its partitions
    exist is unknown.
    """
    cuts = cuts or {}
    definition = scope.version.definition
    names = upstream_names(scope.version)
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
    mappings = definition.get("mappings") or {}
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
) -> Edge | None:
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
    explicit_mapping = mapping_of(mapping)
    all_of_time = needs_all_of_time(scope.definition, definition, explicit_mapping)
    return Edge(
        upstream=upstream,
        definition=definition,
        present=asset.definition,
        downstream=scope.definition,
        mapping=explicit_mapping,
        part=upstream_scope,
        since=_beginning(upstream, upstream_scope, request_time, beginning)
        if all_of_time
        else request_time,
        until=request_time,
    )


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

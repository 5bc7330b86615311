"""The assets of a backfill: which partitions of each, made by which code, and what each needs."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import slicewise
from assets_app.execution.frozen import Cut, as_frozen, upstream_names
from assets_app.execution.requests import Strategy
from assets_app.models import Asset, AssetPartition, ProducerVersion
from backfills_app.models import AssetRole
from backfills_app.services.cuts import by_definition, still_there
from backfills_app.services.places import Places
from partitions_app.rules import goes_by_windows, mapping_of, needs_all_of_time
from slicewise.keys import WHOLE
from slicewise.mapping import WindowMapping
from slicewise.overlap import overlapping
from slicewise.relation import matching_segments
from slicewise.slabs import Slab

Definition = slicewise.PartitionDefinition | None


@dataclass(eq=False, kw_only=True)
class Part:
    """One asset of a backfill, and those of its partitions that it is about.

    ``terms`` are these in the order in which they are listed. ``outlets`` are the assets that its
    function makes: itself, and those made with it. ``layer`` is 1 where it needs no other asset of
    the backfill, else one more than the highest of those that it needs.
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
        """All of its partitions."""
        found = slicewise.PartitionSet(self.definition, ())
        for term in self.terms:
            found |= term
        return found

    @cached_property
    def places(self) -> Places:
        """Their numbers."""
        return Places(self.whole)

    @property
    def selection(self) -> str:
        """Them as text, term by term."""
        return "; ".join(term.text for term in self.terms)

    @property
    def nothing(self) -> slicewise.PartitionSet:
        """None of its partitions."""
        return slicewise.PartitionSet(self.definition, ())

    def add_terms(self, terms: Iterable[slicewise.PartitionSet]) -> None:
        """Add partitions, in their order, after those that are there already."""
        for term in terms:
            if more := term - self.whole:
                self.terms = (*self.terms, more)
                del self.whole
                self.__dict__.pop("places", None)

    @property
    def upstream_parts(self) -> "list[Part]":
        """The assets of this backfill that it needs something of."""
        return [edge.part for edge in self.edges if edge.part is not None]


@dataclass(eq=False, kw_only=True)
class Edge:
    """What the partitions of an asset need of an upstream one.

    ``part`` is that of the upstream asset where this backfill makes it. ``definition`` says what
    is needed, ``present`` is the upstream asset's own: it may have changed since the request, and
    ``part`` counts by that of the request, although a retry may need what is in force by then.
    ``since`` and ``until`` are the ends of the upstream asset's time where all of it is needed, or
    the last of it.
    """

    upstream: Asset
    definition: Definition
    present: Definition
    downstream: Definition
    mapping: slicewise.PartitionMapping | None
    part: Part | None = None
    since: datetime
    until: datetime

    @property
    def reads_whatever_there_is(self) -> bool:
        """A whole asset over a partitioned one: holes do not matter (need rule 5)."""
        return self.downstream is None and self.definition is not None and self.mapping is None

    def needed(self, chosen: slicewise.PartitionSet) -> slicewise.PartitionSet:
        """Return the upstream partitions that the chosen downstream partitions need."""
        return slicewise.upstream_partitions(
            self.downstream, self.definition, chosen, self.mapping,
            since=self.since, until=self.until,
        )  # fmt: skip

    @property
    def is_outdated(self) -> bool:
        """Whether the upstream asset is defined otherwise by now."""
        return self.definition != self.present

    def removed(self, upstream: slicewise.PartitionSet) -> slicewise.PartitionSet:
        """Return the upstream partitions that the asset does not have any more."""
        there = still_there(self.present, upstream)
        nothing = slicewise.PartitionSet(self.definition, ())
        return nothing if there is upstream else upstream - there

    def of_part(self, needed: slicewise.PartitionSet) -> slicewise.PartitionSet:
        """Return the needed upstream partitions that this backfill has, as its part counts them."""
        assert self.part is not None  # noqa: S101  (asked only where this backfill makes it)
        return by_definition(self.part.definition, needed) & self.part.whole

    def needing(
        self, upstream: slicewise.PartitionSet, chosen: slicewise.PartitionSet
    ) -> slicewise.PartitionSet:
        """Return the chosen downstream partitions that need some of the upstream ones, which may
        be as the part counts them.
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

        Where only the downstream asset has time, or all of its windows need the same, the result is
        bounded by ``since`` and ``until``.
        """
        if goes_by_windows(self.mapping):
            return slicewise.downstream_partitions(
                self.definition, self.downstream, upstream, self.mapping, since=since, until=until
            )
        # Such a mapping reads the bounds for both sides: the last upstream window may well begin
        # before the first one downstream.
        found = slicewise.downstream_partitions(
            self.definition, self.downstream, upstream, self.mapping,
            since=min(self.since, since), until=self.until,
        )  # fmt: skip
        return found & slicewise.downstream_partitions(
            None, self.downstream, [WHOLE], since=since, until=until
        )

    def needing_nonexistent(
        self, chosen: slicewise.PartitionSet, lacks: Any
    ) -> slicewise.PartitionSet:
        """Return the chosen partitions that need upstream partitions which do not exist: ``lacks``,
        which names no excluded windows.
        """
        if not lacks:
            return slicewise.PartitionSet(self.downstream, ())
        if not goes_by_windows(self.mapping):
            # Such a mapping needs the same for all of them.
            return chosen
        found = slicewise.PartitionSet(self.downstream, ())
        if lacks.segments:
            found |= self._of_lost_segments(chosen) & self._of_windows_needed(chosen, lacks)
        if lacks.spans:
            found |= chosen & slicewise.PartitionSet(
                self.downstream, self._of_lost_windows(chosen, lacks.spans)
            )
        return found

    def _of_lost_segments(self, chosen: slicewise.PartitionSet) -> slicewise.PartitionSet:
        mapped = matching_segments(self.downstream, self.definition, chosen.space)
        used = frozenset().union(*(slab.segments for slab in chosen.slabs))
        lost = frozenset(number for number in used if mapped(frozenset({number}))[1])
        slabs = (Slab(slab.first, slab.stop, slab.segments & lost) for slab in chosen.slabs)
        return slicewise.PartitionSet(self.downstream, slabs)

    def _of_windows_needed(
        self, chosen: slicewise.PartitionSet, lacks: Any
    ) -> slicewise.PartitionSet:
        """Return the chosen partitions that have an upstream window which is not excluded: of
        excluded windows no segment is needed either.
        """
        times = [each and each.time_dimension for each in (self.downstream, self.definition)]
        downstream, upstream = times
        if downstream is None or upstream is None or not upstream.space.time.has_exclusions:
            return chosen
        windows = slicewise.PartitionSet(
            downstream, [slab._replace(segments=frozenset({0})) for slab in chosen.slabs]
        )
        needed = slicewise.upstream_partitions(downstream, upstream, windows, self.mapping)
        found = slicewise.downstream_partitions(upstream, downstream, needed, self.mapping)
        of_all_segments = chosen.space.segments.all
        slabs = [slab._replace(segments=of_all_segments) for slab in found.slabs]
        if needed.blocking.spans:
            slabs += self._of_lost_windows(chosen, needed.blocking.spans)
        return slicewise.PartitionSet(self.downstream, slabs)

    def _of_lost_windows(
        self, chosen: slicewise.PartitionSet, lost: Sequence[slicewise.Interval]
    ) -> Iterator[Slab]:
        assert self.definition is not None  # noqa: S101  (what lacks windows has a definition)
        upstream, downstream = self.definition.space.time, chosen.space.time
        rule = (
            self.mapping.downstream_windows
            if isinstance(self.mapping, WindowMapping)
            else overlapping
        )
        ticks = upstream.ticks
        firsts = [ticks.rank(span.first_second) for span in lost]
        stops = [ticks.rank(span.stop_second) for span in lost]
        for first, stop in rule(upstream, (firsts, stops), downstream):
            yield Slab(*downstream.clip(first, stop), chosen.space.segments.all)


def join(parts: Sequence[Part], at: datetime) -> None:
    """Set what each of the parts, upstream before downstream, needs of those before it and of other
    assets, and its layer.
    """
    for number, part in enumerate(parts):
        part.edges = edges_of(part, parts[:number], at)
        part.layer = 1 + max((upstream.layer for upstream in part.upstream_parts), default=0)


def edges_of(
    part: Part,
    parts: Collection[Part],
    at: datetime,
    cuts: Mapping[int, Cut] | None = None,
    *,
    beginning: datetime | None = None,
) -> tuple[Edge, ...]:
    """Return what the asset's frozen code reads and is scheduled by; of the parts, what comes
    before it.

    ``cuts`` are the frozen definitions of upstream assets: others go by those of their parts, or
    by their present ones.
    ``beginning`` is where the time of the parts begins while their partitions are not known. Left
    out is what something else writes and of which nothing was ever recorded: nobody knows what is
    there of it.
    """
    cuts = cuts or {}
    definition = part.version.definition
    names = upstream_names(part.version)
    by_name = {
        outlet.name: (outlet, each)
        for each in parts if each is not part
        for outlet in each.outlets
    }  # fmt: skip
    own = {outlet.name for outlet in part.outlets}
    outside = Asset.objects.select_related("partition_definition").filter(
        name__in=[name for name in names if name not in by_name and name not in own]
    )
    upstream: dict[str, tuple[Asset, Part | None]] = {
        asset.name: (asset, None) for asset in outside
    }
    upstream |= {name: by_name[name] for name in names if name in by_name}
    mappings = definition.get("mappings") or {}
    found = (
        _edge(part, asset, source, cuts, mappings.get(name), at, beginning)
        for name, (asset, source) in upstream.items()
    )
    return tuple(edge for edge in found if edge is not None)


def _edge(
    part: Part,
    asset: Asset,
    source: Part | None,
    cuts: Mapping[int, Cut],
    mapping: Mapping[str, Any] | None,
    at: datetime,
    beginning: datetime | None,
) -> Edge | None:
    upstream = as_frozen(asset, cuts)
    if (
        source is None
        and asset.producer_id is None
        and not AssetPartition.objects.made_of(upstream).exists()
    ):
        return None
    if source is not None and asset.pk not in cuts:
        definition = source.definition
    else:
        definition = upstream.definition
    rule = mapping_of(mapping)
    all_of_time = needs_all_of_time(part.definition, definition, rule)
    return Edge(
        upstream=upstream,
        definition=definition,
        present=asset.definition,
        downstream=part.definition,
        mapping=rule,
        part=source,
        since=_beginning(upstream, source, at, beginning) if all_of_time else at,
        until=at,
    )


def _beginning(
    upstream: Asset, source: Part | None, at: datetime, known: datetime | None
) -> datetime:
    """Where the time of an upstream asset begins: with what was made of it first, or is here."""
    first = AssetPartition.objects.made_of(upstream).first_start()
    if known is None and source is not None and (hull := source.whole.hull) is not None:
        known = hull.start
    return min(each for each in (first, known, at) if each is not None)


def whole_of(definition: Definition) -> slicewise.PartitionSet:
    """Return the one partition of a definition without partitions."""
    return slicewise.PartitionSet.of(definition, [WHOLE])

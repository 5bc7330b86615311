"""The assets of a backfill: which partitions of each, made by which code, and what each needs."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import slicewise
from assets_app.catalogue.refusals import scheduling_names
from assets_app.execution.requests import Strategy
from assets_app.models import Asset, AssetPartition, ProducerVersion
from backfills_app.services.places import Places
from partitions_app.rules import goes_by_windows, has_time, mapping_of, needs_all_of_time
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
    function makes: itself, and those made with it.
    """

    asset: Asset
    version: ProducerVersion
    definition: Definition
    terms: tuple[slicewise.PartitionSet, ...]
    outlets: Sequence[Asset]
    strategy: Strategy
    params: dict[str, Any]
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

    @property
    def upstream_parts(self) -> "list[Part]":
        """The assets of this backfill that it needs something of."""
        return [edge.part for edge in self.edges if edge.part is not None]


@dataclass(eq=False, kw_only=True)
class Edge:
    """What the partitions of an asset need of an upstream one.

    ``part`` is that of the upstream asset where this backfill makes it. ``since`` and ``until``
    are the ends of the upstream asset's time where all of it is needed, or the last of it.
    """

    upstream: Asset
    definition: Definition
    downstream: Definition
    mapping: slicewise.PartitionMapping | None
    part: Part | None = None
    since: datetime
    until: datetime

    @property
    def reads_whatever_there_is(self) -> bool:
        """A whole asset over a partitioned one: holes do not matter (calendar rule 5)."""
        return self.downstream is None and self.definition is not None and self.mapping is None

    def needed(self, chosen: slicewise.PartitionSet) -> slicewise.PartitionSet:
        """The upstream partitions that some downstream ones need."""
        return slicewise.upstream_partitions(
            self.downstream, self.definition, chosen, self.mapping,
            since=self.since, until=self.until,
        )  # fmt: skip

    def needing(
        self, upstream: slicewise.PartitionSet, chosen: slicewise.PartitionSet
    ) -> slicewise.PartitionSet:
        """Those of the chosen downstream partitions that need some of the upstream ones."""
        if not upstream or not chosen:
            return slicewise.PartitionSet(self.downstream, ())
        hull = chosen.hull
        return chosen & self.following(
            upstream, hull.start if hull else self.since, hull.end if hull else self.until
        )

    def following(
        self, upstream: slicewise.PartitionSet, since: datetime, until: datetime
    ) -> slicewise.PartitionSet:
        """All downstream partitions that need some of the upstream ones; of a time that only they
        have, or of which all need the same, those within some time.
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
        """Those of the chosen that need what the upstream definition does not have: ``lacks``."""
        if not lacks:
            return slicewise.PartitionSet(self.downstream, ())
        if not goes_by_windows(self.mapping):
            # Such a mapping needs the same for all of them.
            return chosen
        found = slicewise.PartitionSet(self.downstream, ())
        if lacks.segments:
            found |= self._of_lost_segments(chosen)
        # Of all of a time only the windows that there are.
        if lacks.spans and has_time(self.downstream):
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


def edges_of(part: Part, parts: Collection[Part], at: datetime) -> tuple[Edge, ...]:
    """What the asset's frozen code reads and is scheduled by; of the parts, what comes before it.

    Left out is what something else writes and of which nothing was ever recorded: nobody knows
    what is there of it.
    """
    definition = part.version.definition
    names = [*(definition.get("inlets") or ()), *scheduling_names(definition.get("schedule"))]
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
        _edge(part, asset, source, mappings.get(name), at)
        for name, (asset, source) in upstream.items()
    )
    return tuple(edge for edge in found if edge is not None)


def _edge(
    part: Part,
    upstream: Asset,
    source: Part | None,
    mapping: Mapping[str, Any] | None,
    at: datetime,
) -> Edge | None:
    if (
        source is None
        and upstream.producer_id is None
        and not AssetPartition.objects.made_of(upstream).exists()
    ):
        return None
    definition = upstream.definition if source is None else source.definition
    rule = mapping_of(mapping)
    all_of_time = needs_all_of_time(part.definition, definition, rule)
    return Edge(
        upstream=upstream,
        definition=definition,
        downstream=part.definition,
        mapping=rule,
        part=source,
        since=_beginning(upstream, source, at) if all_of_time else at,
        until=at,
    )


def _beginning(upstream: Asset, source: Part | None, at: datetime) -> datetime:
    """Where the time of an upstream asset begins: with what was made of it first, or is here."""
    first = AssetPartition.objects.made_of(upstream).first_start()
    hull = source.whole.hull if source is not None else None
    return min(one for one in (first, None if hull is None else hull.start, at) if one is not None)


def whole_of(definition: Definition) -> slicewise.PartitionSet:
    """The one partition of what is not partitioned."""
    return slicewise.PartitionSet.of(definition, [WHOLE])

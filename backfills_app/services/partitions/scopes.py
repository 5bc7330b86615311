"""The assets of a backfill, each with the partitions that the backfill covers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cached_property
from typing import Any

import slicewise
from backfills_app.models import AssetRole
from backfills_app.services.partitions.definition_conversion import (
    by_definition,
    in_present_definition,
)
from backfills_app.services.partitions.frozen_assets import BackfillEdge, FrozenAsset, edges_of
from backfills_app.services.partitions.positions import Positions
from slicewise.partitions import ended_by


@dataclass(frozen=True, eq=False, kw_only=True)
class AssetScope(FrozenAsset):
    """One asset of a backfill, with the partitions that the backfill covers.

    ``terms`` are these partitions in the order in which the request lists the partitions;
    ``not_ended`` counts partitions left out because their windows have not ended. ``layer`` is 1 if
    the asset needs no other asset of the backfill, otherwise one more than the highest layer of the
    assets that it needs.
    """

    terms: tuple[slicewise.PartitionSet, ...]
    edges: tuple[BackfillEdge, ...]
    role: str = AssetRole.CHOSEN
    layer: int = 1
    not_ended: int = 0
    mapping: dict[str, Any] | None = None

    @cached_property
    def whole(self) -> slicewise.PartitionSet:
        """All partitions of the asset that the backfill covers."""
        return united(self, self.terms)

    @cached_property
    def positions(self) -> Positions:
        """The positions of the partitions."""
        return Positions(self.whole)

    @property
    def selection(self) -> str:
        """The partitions as text of the selection grammar, term by term."""
        return "; ".join(term.text for term in self.terms)

    @property
    def upstream_scopes(self) -> list[FrozenAsset]:
        """The assets of this backfill that this asset needs partitions of."""
        return [edge.upstream_scope for edge in self.edges if edge.upstream_scope is not None]

    def covered(self, partitions: slicewise.PartitionSet) -> slicewise.PartitionSet:
        """Return the partitions of a set, which may have another definition of the asset, that this
        backfill covers.
        """
        return by_definition(self.definition, partitions) & self.whole


@dataclass(eq=False)
class ScopeDraft:
    """A frozen asset with the partitions that a request asks for, while the request is read.

    ``terms`` correspond to the terms of the request; ``not_ended`` counts partitions left out
    because their windows have not ended. ``mapping`` is shown as the one by which the asset
    follows.
    """

    frozen: FrozenAsset
    role: AssetRole
    terms: list[slicewise.PartitionSet]
    not_ended: int = 0
    mapping: dict[str, Any] | None = None

    @property
    def whole(self) -> slicewise.PartitionSet:
        """All partitions."""
        return united(self.frozen, self.terms)

    def keep_past(self, request_time: datetime) -> None:
        """Keep in each term the partitions that have ended and that exist by the definition in
        force.
        """
        for number, term in enumerate(self.terms):
            ended = ended_by(term, request_time)
            self.not_ended += len(term) - len(ended)
            self.terms[number] = in_present_definition(self.frozen.present, ended)

    def drop_repeated(self) -> None:
        """Drop partitions of earlier terms from each term."""
        earlier = self.frozen.nothing
        for number, term in enumerate(self.terms):
            self.terms[number] = term - earlier
            earlier |= term

    def drop_empty(self) -> None:
        """Drop the terms without partitions."""
        self.terms = [term for term in self.terms if term]


def united(
    frozen: FrozenAsset, partition_sets: Iterable[slicewise.PartitionSet]
) -> slicewise.PartitionSet:
    """Return the partitions of all sets of one asset."""
    partitions = frozen.nothing
    for partition_set in partition_sets:
        partitions |= partition_set
    return partitions


def partition_count(drafts: Iterable[ScopeDraft]) -> int:
    """Return the number of partitions of all assets."""
    return sum(len(draft.whole) for draft in drafts)


def frozen_values(frozen: FrozenAsset) -> dict[str, Any]:
    """Return the values of a frozen asset, for the same asset with its partitions."""
    return {entry.name: getattr(frozen, entry.name) for entry in fields(FrozenAsset)}


def scopes_of(drafts: Sequence[ScopeDraft], request_time: datetime) -> list[AssetScope]:
    """Return the assets with edges and layers. The drafts come upstream before downstream; an edge
    leads to an earlier asset of the backfill, or to an asset outside the backfill.
    """
    scopes: list[AssetScope] = []
    for draft in drafts:
        edges = edges_of(draft.frozen, scopes, request_time, beginning_of)
        layers = [
            edge.upstream_scope.layer
            for edge in edges
            if isinstance(edge.upstream_scope, AssetScope)
        ]
        scopes.append(
            AssetScope(
                **frozen_values(draft.frozen),
                terms=tuple(draft.terms),
                edges=edges,
                role=draft.role,
                layer=1 + max(layers, default=0),
                not_ended=draft.not_ended,
                mapping=draft.mapping,
            )
        )
    return scopes


def beginning_of(scope: "AssetScope | ScopeDraft") -> datetime | None:
    """Return the start of the first window that the backfill covers; None without windows."""
    return hull.start if (hull := scope.whole.hull) else None

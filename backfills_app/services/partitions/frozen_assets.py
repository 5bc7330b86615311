"""The assets of a backfill with the code and the definitions that the backfill uses to the end, and
the partitions that these assets need of other assets; the limits of one backfill.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

from django.conf import settings

import slicewise
from assets_app.execution.attempt.frozen import FrozenDefinition, as_frozen, freeze_upstream
from assets_app.execution.request.requests import Strategy
from assets_app.models import Asset, AssetPartition, ProducerVersion, RunGroup
from assets_app.queries.edges import first_start
from backfills_app.models import BackfillAsset
from backfills_app.services.partitions.definition_conversion import (
    by_definition,
    in_present_definition,
)
from partitions_app.edges import Edge, mapping_of
from partitions_app.models import PartitionDefinition
from slicewise_server.web.request_errors import InvalidRequest

Definition = slicewise.PartitionDefinition | None


@dataclass(frozen=True, eq=False, kw_only=True)
class FrozenAsset:
    """An asset with frozen code: version, partition definition with runtime keys, params.

    ``present`` is the definition in force, which may have other partitions than ``definition``.
    ``outlets`` are the assets that the function writes: this asset, and assets written together
    with this one. ``frozen_definitions`` are those of upstream assets, by the ids of the assets;
    other upstream assets have the definitions in force.
    """

    asset: Asset
    version: ProducerVersion
    definition: Definition
    present: Definition
    outlets: Sequence[Asset]
    strategy: Strategy
    params: dict[str, Any]
    frozen_definitions: Mapping[int, FrozenDefinition] = field(default_factory=dict)

    @property
    def nothing(self) -> slicewise.PartitionSet:
        """The empty set of partitions of this asset."""
        return slicewise.PartitionSet(self.definition, ())

    @cached_property
    def upstream_names(self) -> tuple[str, ...]:
        """The names of the assets that the frozen code reads or is scheduled by, in order."""
        return tuple(self.version.spec.upstream_names)

    def upstream(self, known_rows: Mapping[str, Asset]) -> "Mapping[str, UpstreamAsset]":
        """Return the other assets that the frozen code reads or is scheduled by, by name.

        Assets without a row in ``known_rows`` are read, once in the life of this value.
        """
        upstream, mappings = self._upstream, self.version.spec.mappings
        outlet_names = {outlet.name for outlet in self.outlets}
        new_names = set(self.upstream_names) - outlet_names - upstream.keys()
        rows = [known_rows[name] for name in new_names & known_rows.keys()]
        if unread_names := new_names - known_rows.keys():
            unread = Asset.objects.select_related("partition_definition")
            rows += unread.filter(name__in=unread_names)
        for row in rows:
            mapping = mapping_of(mappings.get(row.name))
            upstream[row.name] = UpstreamAsset(
                row, as_frozen(row, self.frozen_definitions), mapping
            )
        return upstream

    @cached_property
    def _upstream(self) -> "dict[str, UpstreamAsset]":
        return {}


Source = TypeVar("Source", bound=FrozenAsset)


@dataclass(frozen=True, eq=False)
class UpstreamAsset:
    """An upstream asset, present and frozen; ``mapping`` is None for overlap."""

    present: Asset
    frozen: Asset
    mapping: slicewise.PartitionMapping | None

    @cached_property
    def is_known(self) -> bool:
        """Whether the existing partitions are known: another program writes the asset otherwise,
        and no materialization of the asset was ever recorded.
        """
        is_external = self.present.producer_id is None
        return not is_external or AssetPartition.objects.materialized_of(self.frozen).exists()

    @cached_property
    def first_start(self) -> datetime | None:
        """The start of the first window that was ever materialized."""
        return first_start(self.frozen)


@dataclass(frozen=True, eq=False, kw_only=True)
class BackfillEdge(Edge):
    """The need of an asset for partitions of one upstream asset, ``asset``.

    ``upstream_scope`` is the upstream asset as this backfill covers it, None if the backfill does
    not materialize it. ``upstream`` is the definition by which the need is computed, ``present`` is
    the upstream definition in force, which may have changed since the request. ``upstream_scope``
    numbers partitions by the definition of the request, although a retry may need partitions of the
    definition in force.
    """

    asset: Asset
    present: Definition
    upstream_scope: FrozenAsset | None = None

    @property
    def is_outdated(self) -> bool:
        """Whether the upstream asset is defined differently by now."""
        return self.upstream != self.present

    def removed(self, upstream: slicewise.PartitionSet) -> slicewise.PartitionSet:
        """Return the upstream partitions that the upstream asset no longer has."""
        remaining = in_present_definition(self.present, upstream)
        no_partitions = slicewise.PartitionSet(self.upstream, ())
        return no_partitions if remaining is upstream else upstream - remaining

    def needing(
        self, upstream: slicewise.PartitionSet, chosen: slicewise.PartitionSet
    ) -> slicewise.PartitionSet:
        """Return the chosen downstream partitions that need some of the upstream partitions, which
        may be given by the definition of ``upstream_scope``.
        """
        return super().needing(by_definition(self.upstream, upstream), chosen)


def edges_of(
    scope: FrozenAsset,
    candidates: Collection[Source],
    request_time: datetime,
    beginning_of: Callable[[Source], datetime | None],
) -> tuple[BackfillEdge, ...]:
    """Return an edge for each asset that the frozen code of an asset reads or is scheduled by;
    ``candidates`` are the assets of this backfill that may be upstream.

    Upstream assets are read by their frozen definition, by the definition of their scope, or by the
    definition in force. ``beginning_of`` returns the start of the first partition that the backfill
    covers of an upstream asset. An upstream asset is left out if another program writes it and no
    materialization of the asset was ever recorded: which of its partitions exist is unknown.
    """
    upstream_scopes = by_outlet(candidate for candidate in candidates if candidate is not scope)
    rows = {
        outlet.name: outlet
        for upstream_scope in upstream_scopes.values()
        for outlet in upstream_scope.outlets
    }
    upstream_assets = scope.upstream(rows)
    outside = sorted(name for name in upstream_assets if name not in upstream_scopes)
    inside = [
        name for name in scope.upstream_names if name in upstream_scopes and name in upstream_assets
    ]
    edges: list[BackfillEdge] = []
    for name in dict.fromkeys([*outside, *inside]):
        upstream, upstream_scope = upstream_assets[name], upstream_scopes.get(name)
        if upstream_scope is None and not upstream.is_known:
            continue
        upstream_definition = upstream.frozen.definition
        if upstream_scope is not None and upstream.present.pk not in scope.frozen_definitions:
            upstream_definition = upstream_scope.definition
        edge = BackfillEdge(
            asset=upstream.frozen,
            upstream=upstream_definition,
            present=upstream.present.definition,
            downstream=scope.definition,
            mapping=upstream.mapping,
            upstream_scope=upstream_scope,
            since=request_time,
            until=request_time,
        )
        if edge.needs_all_of_time:
            beginning = beginning_of(upstream_scope) if upstream_scope else None
            begins = (upstream.first_start, beginning, request_time)
            edge = replace(edge, since=min(begin for begin in begins if begin is not None))
        edges.append(edge)
    return tuple(edges)


def by_outlet(assets: Iterable[Source]) -> dict[str, Source]:
    """Return the assets by the names of all outlets of their functions."""
    return {outlet.name: asset for asset in assets for outlet in asset.outlets}


def reads_of(assets: Sequence[Source]) -> dict[Source, set[Source]]:
    """Return, for each asset, the other assets among these that it reads, or that schedule it."""
    writers = by_outlet(assets)
    return {
        asset: {writers[name] for name in asset.upstream_names if name in writers} - {asset}
        for asset in assets
    }


def outlets_of(asset: Asset, version: ProducerVersion) -> list[Asset]:
    """Return the asset, and the assets that its function writes together with it."""
    names = [name for name in version.outlets if name != asset.name]
    if not names:
        return [asset]
    other_outlets = Asset.objects.select_related("partition_definition").filter(name__in=names)
    return [asset, *other_outlets]


def freeze_definitions(group: RunGroup, asset_rows: Iterable[BackfillAsset]) -> None:
    """Store the partition definitions of the upstream assets: for assets in the backfill the
    definitions by which the backfill numbers partitions, for other assets the definitions in force.
    """
    asset_rows = list(asset_rows)
    definitions: dict[str, PartitionDefinition | None] = {}
    for asset_row in asset_rows:
        spec = asset_row.partition
        if spec is None:
            spec = asset_row.producer_version.spec.partition_of(asset_row.asset.name)
        row = PartitionDefinition.of(spec) if spec else None
        definitions |= dict.fromkeys(asset_row.producer_version.outlets, row)
    freeze_upstream(group, [asset_row.producer_version for asset_row in asset_rows], definitions)


def freeze_definitions_in_force(group: RunGroup, asset_rows: Iterable[BackfillAsset]) -> None:
    """Store the partition definitions in force of all upstream assets, assets in the backfill
    included: partitions made with the newest code need the upstream partitions of these
    definitions.
    """
    freeze_upstream(group, [asset_row.producer_version for asset_row in asset_rows], {})


def refuse_too_many_assets(number: int, field: str) -> None:
    """Raise InvalidRequest for more assets than one backfill may have."""
    _refuse_above("MAX_ASSETS_PER_BACKFILL", number, "assets", field)


def refuse_too_many_partitions(number: int, field: str) -> None:
    """Raise InvalidRequest for more partitions than one backfill may have, over all its assets."""
    _refuse_above("MAX_PARTITIONS_PER_BACKFILL", number, "partitions", field)


def _refuse_above(setting: str, number: int, noun: str, field: str) -> None:
    limit = getattr(settings, setting)
    if number > limit:
        raise InvalidRequest(
            {
                field: f"{number:,} {noun} are more than one backfill may have"
                f" ({limit:,}, setting {setting})."
            }
        )

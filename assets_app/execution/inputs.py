"""What a run reads: the upstream partitions mapped to its own, which of them are there, and at
which version.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils import timezone

import slicewise
from assets_app.catalogue.refusals import scheduling_names
from assets_app.execution.connections import connection_of
from assets_app.execution.keys import sent_keys
from assets_app.models import Asset, AssetPartition, ProducerVersion, Run
from assets_app.queries.slices import AssetPartitionQuerySet
from partitions_app.models import PartitionDefinition
from partitions_app.rules import mapping_of, needs_all_of_time
from slicewise.keys import WHOLE


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamInput:
    """One upstream asset of a run: the slices that are there, and the keys that are needed and
    missing.
    """

    asset: Asset
    slices: Sequence[AssetPartition]
    missing: Sequence[str]
    # False for an asset that only schedules: its versions are kept, its data is not read.
    is_inlet: bool = True
    # The file of the run's own bundle in which an asset that something else writes says what its
    # data has to fulfil, so that the run asks that of what it reads; empty where nothing does.
    declared_in: str = ""

    def to_json(self) -> dict[str, Any]:
        """As the runner is told."""
        row = self.asset.partition_definition
        return {
            "uri": self.asset.uri or None,
            "partition": None if row is None else row.spec,
            "partitions": sent_keys(self.asset.definition, (piece.key for piece in self.slices)),
            "missing": list(self.missing),
            "materialized_at": self._materialized_at(),
            "declared_in": self.declared_in or None,
            "format": self.asset.format or None,
            "columns": self.asset.columns,
            "connection": connection_of(self.asset.canonical_uri),
        }

    def _materialized_at(self) -> str | None:
        """When the oldest of the slices was made."""
        moments = [made for piece in self.slices if (made := piece.materialized_at)]
        return min(moments).isoformat() if moments else None


def read_inputs(
    run: Run, keys: Sequence[str], *, is_discovering: bool = False
) -> list[UpstreamInput]:
    """The inlets of the run's function and what schedules it, for partitions of these keys: two
    statements for each. A run that is there to find partitions reads as if it made the whole.

    The run's own version says how its partitions are cut and mapped; upstream assets are read as
    they are now. Raises ValueError where a definition does not have one of the keys.
    """
    version = run.producer_version
    spec = version.partition_of(run.asset.name)
    downstream = None if is_discovering else PartitionDefinition.rule_of(spec)
    mappings = version.definition.get("mappings") or {}
    inlets = version.definition.get("inlets") or []
    upstream = Asset.objects.select_related("partition_definition").filter(
        name__in=[*inlets, *scheduling_names(version.definition.get("schedule"))]
    )
    return [
        replace(
            _input(downstream, asset, keys, mappings.get(asset.name)),
            # What is validated is read, too.
            is_inlet=asset.name in [*inlets, *(version.definition.get("inlet_validations") or {})],
            declared_in=_declared_in(asset, version),
        )
        for asset in upstream
    ]


def _declared_in(asset: Asset, version: ProducerVersion) -> str:
    validated = asset.producer_id is None and asset.outlet_validations
    in_own_bundle = asset.bundle_id == version.bundle_version.bundle_id
    return asset.file if validated and in_own_bundle else ""


def _input(
    downstream: slicewise.PartitionDefinition | None,
    upstream: Asset,
    keys: Sequence[str],
    mapping: dict[str, Any] | None,
) -> UpstreamInput:
    there = AssetPartition.objects.made_of(upstream).order_by("window_start", "segment")
    if mapping is None and (downstream is None or upstream.definition is None):
        # The whole of the upstream, whatever of it is there: holes are shown, not required.
        slices = list(there)
        whole_is_missing = upstream.definition is None and not slices
        return UpstreamInput(
            asset=upstream, slices=slices, missing=[""] if whole_is_missing else []
        )
    wanted = [key.text for key in _needed(downstream, upstream, keys, mapping, there)]
    slices = list(there.filter(key__in=wanted))
    present = {piece.key for piece in slices}
    return UpstreamInput(
        asset=upstream, slices=slices, missing=[key for key in wanted if key not in present]
    )


def _needed(
    downstream: slicewise.PartitionDefinition | None,
    upstream: Asset,
    keys: Sequence[str],
    mapping: dict[str, Any] | None,
    there: AssetPartitionQuerySet,
) -> slicewise.PartitionSet:
    """The upstream partitions that the keys are mapped to.

    Where all of an upstream's time is needed, that is from the first window that was ever made
    until now.
    """
    now, rule = timezone.now(), mapping_of(mapping)
    all_of_time = needs_all_of_time(downstream, upstream.definition, rule)
    return slicewise.upstream_partitions(
        downstream,
        upstream.definition,
        [WHOLE] if downstream is None else [downstream.parse(key) for key in keys],
        rule,
        since=(there.first_start() if all_of_time else None) or now,
        until=now,
    )

"""What a run reads: the upstream partitions mapped to its own, which of them are there, and at
which version.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import slicewise
from assets_app.models import Asset, AssetDependency, AssetPartition, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamInput:
    """One upstream asset of a run: the slices that are there, and the keys that are needed and
    missing.
    """

    asset: Asset
    slices: Sequence[AssetPartition]
    missing: Sequence[str]

    def to_json(self) -> dict[str, Any]:
        """As the runner is told."""
        row = self.asset.partition_definition
        return {
            "uri": self.asset.uri or None,
            "partition": None if row is None else row.spec,
            "partitions": [piece.key for piece in self.slices],
            "missing": list(self.missing),
        }


def read_inputs(run: Run, keys: Sequence[str]) -> list[UpstreamInput]:
    """The inlets of the run's assets, for partitions of these keys: two statements per inlet."""
    edges = (
        AssetDependency.objects.filter(
            downstream__producer=run.producer_version.producer_id, inlet=True
        )
        .select_related("upstream__partition_definition", "downstream__partition_definition")
        .distinct("upstream_id")
        .order_by("upstream_id")
    )
    return [_input(edge.downstream, edge.upstream, keys) for edge in edges]


def _input(downstream: Asset, upstream: Asset, keys: Sequence[str]) -> UpstreamInput:
    there = AssetPartition.objects.filter(
        asset=upstream, identity=upstream.identity, version__gt=0
    ).order_by("window_start", "segment")
    if downstream.definition is None or upstream.definition is None:
        # The whole of the upstream, whatever of it is there: holes are shown, not required.
        slices = list(there)
        whole_is_missing = upstream.definition is None and not slices
        return UpstreamInput(
            asset=upstream, slices=slices, missing=[""] if whole_is_missing else []
        )
    needed = slicewise.upstream_partitions(
        downstream.definition,
        upstream.definition,
        [downstream.definition.parse(key) for key in keys],
    )
    wanted = [key.text for key in needed]
    slices = list(there.filter(key__in=wanted))
    present = {piece.key for piece in slices}
    return UpstreamInput(
        asset=upstream, slices=slices, missing=[key for key in wanted if key not in present]
    )

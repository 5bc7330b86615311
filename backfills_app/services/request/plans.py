"""The data of a plan: the counts of a backfill request at one moment, as pages and API show the
counts. The names of the fields are the names of the API.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from assets_app.execution.request.requests import Strategy
from assets_app.models import Asset, BundleVersion, ProducerVersion
from backfills_app.services.request.estimates import Estimate
from backfills_app.services.request.missing_upstream import MissingUpstream
from partitions_app.rules import UpstreamGap

MOST_HOLDERS = 5
"""The number of holders that a text or a page names."""


@dataclass(frozen=True, slots=True)
class HeldPartitions:
    """Partitions of an asset that a backfill holds, or other runs hold: these have no backfill id.

    ``group_id`` is the group of the runs; None for other runs of several groups.
    """

    backfill_id: int | None
    name: str
    group_id: int | None
    partition_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAsset:
    """The plan of a backfill for one asset. The numbers count partitions, except ``runs``.

    ``total`` is the sum of ``existing`` (skipped by the policy), ``in_flight`` (held by other
    runs), ``upstream_missing`` (needed upstream partitions are missing and not in this backfill)
    and ``to_materialize`` (materialized by this backfill). ``materialized`` and ``failed`` count
    partitions of that status which no run holds; ``stale`` and ``older_code`` count materialized
    partitions that are materialized again for that reason. ``upstream_nonexistent`` counts the
    partitions of ``upstream_missing`` that need nonexistent upstream partitions. ``not_ended``
    counts partitions outside the total, whose windows have not ended. ``in_flight_by`` are
    the held partitions, other runs first, then by backfill. ``layer`` is 1 if the asset
    needs no other asset of the backfill, otherwise one more than the highest layer of the assets
    that it needs.
    """

    asset: Asset
    version: ProducerVersion
    role: str
    layer: int
    selection: str
    total: int
    materialized: int
    failed: int
    in_flight: int
    to_materialize: int
    runs: int
    strategy: Strategy
    params: dict[str, Any]
    stale: int = 0
    older_code: int = 0
    in_flight_by: tuple[HeldPartitions, ...] = ()
    not_ended: int = 0
    upstream_missing: int = 0
    # The missing partitions by upstream asset.
    missing_by_asset: tuple[MissingUpstream, ...] = ()
    upstream_nonexistent: int = 0
    # Needed upstream partitions that do not exist, and excluded ones, by upstream asset.
    upstream_gaps: tuple[UpstreamGap, ...] = ()
    existing: int = 0
    mapping: dict[str, Any] | None = None
    estimate: Estimate | None = None
    # Names of the assets that the function writes together with this one.
    materialized_with: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillPlan:
    """The plan of a request at this moment.

    ``total``, ``to_materialize``, ``runs`` and ``estimate`` cover all ``assets``, which come
    upstream before downstream; other numbers are of ``first_chosen``, the first chosen asset.
    ``first_key`` and ``last_key`` are windows, which pages show as ``first_label`` and
    ``last_label``, in the time zone ``zone``; ``selection`` is text of the selection grammar;
    ``start_date`` and ``end_date`` are the half-open hull. ``refused`` are sentences on assets and
    partitions that the backfill leaves out; the rest can be requested all the same.
    """

    assets: tuple[PlannedAsset, ...]
    first_chosen: PlannedAsset
    zone: str
    first_key: str
    last_key: str
    first_label: str
    last_label: str
    start_date: datetime
    end_date: datetime
    code_version: BundleVersion | None
    # The time of the plan: partitions that have not ended by then are left out.
    at: datetime
    estimate: Estimate | None = None
    refused: tuple[str, ...] = ()

    @property
    def layers(self) -> list[list[PlannedAsset]]:
        """The assets by layer: each after the layers before it, partition by partition."""
        layers: list[list[PlannedAsset]] = []
        for planned in sorted(self.assets, key=lambda asset_plan: asset_plan.layer):
            if not layers or layers[-1][0].layer != planned.layer:
                layers.append([])
            layers[-1].append(planned)
        return layers

    @property
    def total(self) -> int:
        """The number of partitions of all assets."""
        return sum(planned.total for planned in self.assets)

    @property
    def to_materialize(self) -> int:
        """The number of partitions of all assets that the backfill would materialize."""
        return sum(planned.to_materialize for planned in self.assets)

    @property
    def runs(self) -> int:
        """The number of runs of all assets."""
        return sum(planned.runs for planned in self.assets)

    @property
    def selection(self) -> str:
        """The selection of the first chosen asset; the properties below are of this asset too."""
        return self.first_chosen.selection

    @property
    def materialized(self) -> int:
        return self.first_chosen.materialized

    @property
    def failed(self) -> int:
        return self.first_chosen.failed

    @property
    def in_flight(self) -> int:
        return self.first_chosen.in_flight

    @property
    def strategy(self) -> Strategy:
        return self.first_chosen.strategy

    @property
    def params(self) -> dict[str, Any]:
        return self.first_chosen.params

    @property
    def producer_version(self) -> ProducerVersion:
        return self.first_chosen.version

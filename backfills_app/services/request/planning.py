"""The plan of a request at this moment: the preview shows the plan that the creation
would follow.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import slicewise
from accounts_app.models import User
from assets_app.execution.request.requests import Strategy, partitions_per_run
from assets_app.models import Asset, BundleVersion, ProducerVersion
from backfills_app.models import Backfill
from backfills_app.services.partitions.blocked_partitions import (
    blocked_partitions,
    materialized,
    upstream_gaps,
)
from backfills_app.services.partitions.frozen_assets import BackfillEdge, FrozenAsset
from backfills_app.services.partitions.partition_statuses import (
    partition_statuses,
    skipped_by_policy,
)
from backfills_app.services.partitions.scopes import AssetScope
from backfills_app.services.partitions.spans import spans
from backfills_app.services.request.backfill_request import BackfillRequest
from backfills_app.services.request.checking import Checked, checked
from backfills_app.services.request.estimates import Estimate, estimated, runs_at_once, summed
from partitions_app.labels import label_of_key
from partitions_app.rules import UpstreamGap


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAsset:
    """The plan of a backfill for one asset. The numbers count partitions, except ``runs``.

    ``total`` is the sum of ``existing`` (skipped by the policy), ``in_flight`` (held by other
    runs), ``missing_upstream`` (needed upstream partitions are missing and not in this backfill)
    and ``to_make``. ``materialized`` and ``failed`` count partitions of that status which no run
    holds; ``stale`` and ``older_code`` count materialized partitions that are materialized again
    for that reason. ``nonexistent_upstream`` counts the partitions of ``missing_upstream`` that
    need nonexistent upstream partitions. ``not_ended`` counts partitions outside the total, whose
    windows have not ended. ``in_flight_by`` names the backfills (number and name) or other runs
    that hold partitions. ``layer`` is 1 if the asset needs no other asset of the backfill,
    otherwise one more than the highest layer of the assets that it needs.
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
    to_make: int
    runs: int
    strategy: Strategy
    params: dict[str, Any]
    stale: int = 0
    older_code: int = 0
    in_flight_by: tuple[tuple[int | None, str, int], ...] = ()
    not_ended: int = 0
    missing_upstream: int = 0
    nonexistent_upstream: int = 0
    # Needed upstream partitions that do not exist, and excluded ones, by upstream asset.
    upstream_gaps: tuple[UpstreamGap, ...] = ()
    existing: int = 0
    mapping: dict[str, Any] | None = None
    estimate: Estimate | None = None
    # Names of the assets that the function writes together with this one.
    made_with: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillPlan:
    """The plan of a request at this moment.

    ``total``, ``to_make``, ``runs`` and ``estimate`` cover all ``assets``, which come upstream
    before downstream; other numbers are of the first chosen asset, ``asked``. ``first_key`` and
    ``last_key`` are windows, which pages show as ``first_label`` and ``last_label``, in the time
    zone ``zone``; ``selection`` is text of the selection grammar; ``start_date`` and ``end_date``
    are the half-open hull. ``refused`` are sentences on assets and partitions that the backfill
    leaves out; the rest can be requested all the same.
    """

    assets: tuple[PlannedAsset, ...]
    asked: PlannedAsset
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
    def to_make(self) -> int:
        """The number of partitions of all assets that the backfill would materialize."""
        return sum(planned.to_make for planned in self.assets)

    @property
    def runs(self) -> int:
        """The number of runs of all assets."""
        return sum(planned.runs for planned in self.assets)

    @property
    def selection(self) -> str:
        """The selection of the first chosen asset; the properties below are of this asset too."""
        return self.asked.selection

    @property
    def materialized(self) -> int:
        return self.asked.materialized

    @property
    def failed(self) -> int:
        return self.asked.failed

    @property
    def in_flight(self) -> int:
        return self.asked.in_flight

    @property
    def strategy(self) -> Strategy:
        return self.asked.strategy

    @property
    def params(self) -> dict[str, Any]:
        return self.asked.params

    @property
    def producer_version(self) -> ProducerVersion:
        return self.asked.version


def check_backfill(request: BackfillRequest, *, user: User) -> BackfillPlan:
    """Check the request as creation would, and return the plan. Writes nothing.

    Raises PermissionDenied, and InvalidRequest with all wrong fields at once.
    """
    checked_request = checked(request, user=user)
    assets = _planned_assets(request, checked_request)
    windows = checked_request.timed.whole
    first, last = windows[0].time, windows[-1].time
    time = (
        checked_request.timed.definition.time_dimension
        if checked_request.timed.definition
        else None
    )
    assert time is not None  # noqa: S101  (it has time)
    return BackfillPlan(
        assets=assets,
        asked=next(planned for planned in assets if planned.asset == checked_request.asked.asset),
        zone=time.timezone,
        first_key=str(first),
        last_key=str(last),
        first_label=label_of_key(first),
        last_label=label_of_key(last),
        start_date=checked_request.start_date,
        end_date=checked_request.end_date,
        code_version=checked_request.code_version,
        at=checked_request.at,
        estimate=summed(planned.estimate for planned in assets),
        refused=tuple(checked_request.refused),
    )


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The partitions of an asset that this backfill or other runs materialize (``made``), and the
    partitions with missing upstream data.
    """

    made: slicewise.PartitionSet
    missing: slicewise.PartitionSet


def _planned_assets(request: BackfillRequest, checked_request: Checked) -> tuple[PlannedAsset, ...]:
    outcomes: dict[FrozenAsset, _Outcome] = {}
    at_once = runs_at_once(request.max_active_runs)

    def available(edge: BackfillEdge, needed: slicewise.PartitionSet) -> slicewise.PartitionSet:
        outcome = outcomes.get(edge.upstream_scope) if edge.upstream_scope is not None else None
        if outcome is None:
            return materialized(edge, needed)
        rest = needed - outcome.made
        return (needed - rest) | ((materialized(edge, rest) if rest else rest) - outcome.missing)

    planned = []
    for scope in checked_request.scopes:
        status = partition_statuses(scope, scope.whole)
        upstream = [
            (edge, outcomes[edge.upstream_scope].made)
            for edge in scope.edges
            if edge.upstream_scope is not None
        ]
        skipped = skipped_by_policy(request.existing, scope, status, upstream)
        rest = scope.whole - skipped.existing - status.held
        blocked = blocked_partitions(scope, rest, available)
        to_make = rest - blocked.all
        outcomes[scope] = _Outcome(made=to_make | status.held, missing=blocked.all)
        runs = runs_of(scope, to_make, allow_holes=request.allow_holes)
        planned.append(
            PlannedAsset(
                asset=scope.asset,
                version=scope.version,
                role=scope.role,
                layer=scope.layer,
                selection=scope.selection,
                total=len(scope.whole),
                materialized=len(status.materialized),
                failed=len(status.failed),
                stale=len(skipped.stale),
                older_code=len(skipped.older_code),
                in_flight=len(status.held),
                in_flight_by=_holders(scope, status.held),
                not_ended=scope.not_ended,
                missing_upstream=len(blocked.all),
                nonexistent_upstream=len(blocked.nonexistent),
                upstream_gaps=upstream_gaps(scope, scope.whole, available),
                existing=len(skipped.existing),
                to_make=len(to_make),
                runs=runs,
                strategy=scope.strategy,
                params=scope.params,
                mapping=scope.mapping,
                estimate=estimated(scope.asset, len(to_make), runs, at_once),
                made_with=tuple(outlet.name for outlet in scope.outlets if outlet != scope.asset),
            )
        )
    return tuple(planned)


def runs_of(scope: AssetScope, to_make: slicewise.PartitionSet, *, allow_holes: bool) -> int:
    """Count the runs that materialize these partitions, split as admission splits partitions."""
    size = partitions_per_run(scope.strategy)
    if size is None:
        return int(bool(to_make))
    if size == 1:
        return len(to_make)
    lengths: Sequence[int]
    if allow_holes:
        lengths = [len(to_make & term) for term in scope.terms]
    else:
        lengths = [
            stop - first
            for term in scope.terms
            for first, stop in scope.positions.unbroken(to_make & term)
        ]
    return sum(-(-length // size) for length in lengths)


def _holders(
    scope: AssetScope, held_partitions: slicewise.PartitionSet
) -> tuple[tuple[int | None, str, int], ...]:
    """Return the number of held partitions by backfill (number and name); None as number for other
    runs.
    """
    if not held_partitions:
        return ()
    by_backfill = spans(
        scope.definition,
        scope.outlets,
        held_partitions,
        label="coalesce(asked.id::text, '')",
        joins="JOIN assets_app_run AS holder ON holder.id = partition.held_by_id"
        " LEFT JOIN backfills_app_backfill AS asked ON asked.group_id = holder.group_id",
    )
    names: Mapping[int, str] = dict(
        Backfill.objects.filter(pk__in=[int(pk) for pk in by_backfill if pk]).values_list(
            "pk", "name"
        )
    )
    return tuple(
        (int(pk), names[int(pk)], len(partitions)) if pk else (None, "other runs", len(partitions))
        for pk, partitions in sorted(by_backfill.items())
    )

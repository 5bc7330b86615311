"""The plan of a request at this moment: the preview shows the plan that the creation
would follow.
"""

from dataclasses import dataclass

import slicewise
from accounts_app.models import User
from assets_app.queries.partition_spans import spans
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
    skipped_by_status,
)
from backfills_app.services.partitions.scopes import AssetScope
from backfills_app.services.request.backfill_request import BackfillRequest
from backfills_app.services.request.checking import Checked, checked
from backfills_app.services.request.estimates import estimated, run_count, runs_at_once, summed
from backfills_app.services.request.missing_upstream import missing_by_asset
from backfills_app.services.request.plan_limits import PlanLimit
from backfills_app.services.request.plans import BackfillPlan, HeldPartitions, PlannedAsset
from partitions_app.labels import label_of_key


def check_backfill(request: BackfillRequest, *, user: User) -> BackfillPlan:
    """Check the request as creation would, and return the plan. Writes nothing.

    Raises PermissionDenied, and InvalidRequest with all wrong fields at once.
    """
    return plan_of(request, checked(request, user=user))


def run_count_within(limit: PlanLimit, request: BackfillRequest, *, user: User) -> int | None:
    """Return the number of partitions that a request would run; None if the plan would exceed the
    limit. Raises the errors of check_backfill.
    """
    checked_request = checked(request, user=user)
    if not limit.allows(checked_request.scopes):
        return None
    return plan_of(request, checked_request).to_materialize


def plan_of(request: BackfillRequest, checked_request: Checked) -> BackfillPlan:
    """Return the plan of a request without errors; reads the records of all its partitions."""
    planner = _Planner(request, runs_at_once(request.max_active_runs))
    assets = tuple(planner.plan(scope) for scope in checked_request.scopes)
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
        first_chosen=next(
            planned for planned in assets if planned.asset == checked_request.first_chosen.asset
        ),
        zone=time.timezone,
        first_key=str(first),
        last_key=str(last),
        first_label=label_of_key(first),
        last_label=label_of_key(last),
        start_date=checked_request.start_date,
        end_date=checked_request.end_date,
        code_version=checked_request.code_version,
        at=checked_request.at,
        estimate=summed([planned.estimate for planned in assets]),
        refused=tuple(checked_request.refused),
    )


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The partitions of an asset that this backfill or other runs materialize, and the partitions
    with missing upstream data.
    """

    materialized: slicewise.PartitionSet
    upstream_missing: slicewise.PartitionSet


class _Planner:
    """Plans the assets of a request, upstream before downstream."""

    def __init__(self, request: BackfillRequest, runs_at_once: int) -> None:
        self._request, self._runs_at_once = request, runs_at_once
        self._outcomes: dict[FrozenAsset, _Outcome] = {}
        self._missing: dict[BackfillEdge, slicewise.PartitionSet] = {}

    def plan(self, scope: AssetScope) -> PlannedAsset:
        """Return the plan for one asset."""
        status = partition_statuses(scope, scope.whole)
        upstream = [
            (edge, self._outcomes[edge.upstream_scope].materialized)
            for edge in scope.edges
            if edge.upstream_scope is not None
        ]
        policy_skips = skipped_by_policy(self._request.existing, scope, status, upstream)
        skipped = skipped_by_status(
            scope.whole,
            existing=policy_skips.existing,
            # The definitions of a plan are the definitions in force.
            removed=scope.nothing,
            in_flight=status.held,
        )
        blocked = blocked_partitions(scope, skipped.rest, self._available)
        to_materialize = skipped.rest - blocked.all
        self._outcomes[scope] = _Outcome(
            materialized=to_materialize | status.held, upstream_missing=blocked.all
        )
        other_outlets = [outlet.name for outlet in scope.outlets if outlet != scope.asset]
        held_by = _held_by(scope, status.held)
        runs = run_count(scope, to_materialize, allow_holes=self._request.allow_holes)
        return PlannedAsset(
            asset=scope.asset,
            version=scope.version,
            role=scope.role,
            layer=scope.layer,
            selection=scope.selection,
            total=len(scope.whole),
            materialized=len(status.materialized),
            failed=len(status.failed),
            stale=len(policy_skips.stale),
            older_code=len(policy_skips.older_code),
            in_flight=len(status.held),
            in_flight_by=held_by,
            not_ended=scope.not_ended,
            upstream_missing=len(blocked.all),
            missing_by_asset=missing_by_asset(
                scope.edges, blocked.all - blocked.nonexistent, blocked.by_edge, self._missing
            )
            if blocked.all
            else (),
            upstream_nonexistent=len(blocked.nonexistent),
            upstream_gaps=upstream_gaps(scope, scope.whole, self._available),
            existing=len(policy_skips.existing),
            to_materialize=len(to_materialize),
            runs=runs,
            strategy=scope.strategy,
            params=scope.params,
            mapping=scope.mapping,
            estimate=estimated(scope.asset, len(to_materialize), runs, self._runs_at_once),
            materialized_with=tuple(other_outlets),
        )

    def _available(
        self, edge: BackfillEdge, needed: slicewise.PartitionSet
    ) -> slicewise.PartitionSet:
        outcome = None
        if edge.upstream_scope is not None:
            outcome = self._outcomes.get(edge.upstream_scope)
        if outcome is None:
            available = materialized(edge, needed)
        else:
            rest = needed - outcome.materialized
            data = materialized(edge, rest) if rest else rest
            available = (needed - rest) | (data - outcome.upstream_missing)
        self._missing[edge] = needed - available
        return available


def _held_by(
    scope: AssetScope, held_partitions: slicewise.PartitionSet
) -> tuple[HeldPartitions, ...]:
    """Return the held partitions of an asset: of other runs together, and by backfill."""
    if not held_partitions:
        return ()
    by_group = spans(
        scope.definition,
        scope.outlets,
        held_partitions,
        label="holder.group_id::text",
        joins="JOIN assets_app_run AS holder ON holder.id = partition.held_by_id",
    )
    counts = {int(group_id): len(partitions) for group_id, partitions in by_group.items()}
    backfills = Backfill.objects.filter(group__in=counts).only("name", "group").order_by("pk")
    by_backfill = [
        HeldPartitions(backfill.pk, backfill.name, backfill.group_id, counts.pop(backfill.group_id))
        for backfill in backfills
    ]
    if not counts:
        return tuple(by_backfill)
    group_id = next(iter(counts)) if len(counts) == 1 else None
    other_runs = HeldPartitions(None, "other runs", group_id, sum(counts.values()))
    return (other_runs, *by_backfill)

"""The ways out of a preview in which no partition would run."""

from dataclasses import dataclass, replace

from django.core.exceptions import PermissionDenied

from accounts_app.models import User
from backfills_app.models import ExistingPolicy
from backfills_app.services import (
    BackfillPlan,
    BackfillRequest,
    Obstacle,
    ObstacleKind,
    PlanLimit,
    run_count_within,
)
from backfills_app.views.plans import Holder, first_holders
from slicewise_server.web.request_errors import InvalidRequest

# Beside its own plan, a preview makes two more at most.
_FURTHER_PLANS = PlanLimit(partitions=20_000, upstream_rows=100_000)


@dataclass(frozen=True, slots=True)
class WaysOut:
    """The reasons for which no partition would run, and the requests that would run some:
    ``rerun_count`` partitions if existing partitions run again, ``upstream_count`` partitions with
    all upstream assets. ``holders`` are the backfills and runs that hold partitions. ``advice`` is
    about ways out whose partitions are too many to plan beside the preview.
    """

    reasons: tuple[str, ...]
    holders: tuple[Holder, ...]
    rerun_count: int
    upstream_count: int
    advice: str


def ways_out(
    obstacles: list[Obstacle], plan: BackfillPlan, request: BackfillRequest, user: User
) -> WaysOut:
    """Return the ways out. Each way that is offered would run at least one partition."""
    changed_requests = {ObstacleKind.EXISTING: replace(request, existing=ExistingPolicy.ALL)}
    if not request.upstream:
        changed_requests[ObstacleKind.UPSTREAM] = replace(request, upstream=True)
    kinds = {obstacle.kind for obstacle in obstacles}
    run_counts = {
        kind: _run_count(changed_request, user)
        for kind, changed_request in changed_requests.items()
        if kind in kinds
    }
    return WaysOut(
        reasons=tuple(obstacle.reason for obstacle in obstacles),
        holders=tuple(first_holders(plan.assets)),
        rerun_count=run_counts.get(ObstacleKind.EXISTING) or 0,
        upstream_count=run_counts.get(ObstacleKind.UPSTREAM) or 0,
        advice=" ".join(
            obstacle.way_out
            for obstacle in obstacles
            if obstacle.kind in run_counts and run_counts[obstacle.kind] is None
        ),
    )


def _run_count(request: BackfillRequest, user: User) -> int | None:
    """Return the number of partitions that a request would run; 0 for a refused request, None for
    a request that is too large to plan.
    """
    try:
        return run_count_within(_FURTHER_PLANS, request, user=user)
    except (InvalidRequest, PermissionDenied):
        return 0

"""The ways out of a preview in which no partition would run."""

from dataclasses import dataclass, replace

from django.core.exceptions import PermissionDenied

from accounts_app.models import User
from backfills_app.models import ExistingPolicy
from backfills_app.services import (
    BackfillPlan,
    BackfillRequest,
    Obstacle,
    check_backfill,
)
from backfills_app.views.plans import Holder, first_holders
from slicewise_server.web.request_errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class WaysOut:
    """The reasons for which no partition would run, and the requests that would run some:
    ``rerun_count`` partitions if existing partitions run again, ``upstream_count`` partitions with
    all upstream assets. ``holders`` are the backfills and runs that hold partitions.
    """

    reasons: tuple[str, ...]
    holders: tuple[Holder, ...]
    rerun_count: int = 0
    upstream_count: int = 0


def ways_out(
    obstacles: list[Obstacle], plan: BackfillPlan, request: BackfillRequest, user: User
) -> WaysOut:
    """Return the ways out. Each way that is offered would run at least one partition."""
    fields = {obstacle.field for obstacle in obstacles}
    existing, upstream = "existing" in fields, "upstream" in fields and not request.upstream
    return WaysOut(
        tuple(obstacle.reason for obstacle in obstacles),
        tuple(first_holders(plan.assets)),
        _run_count(replace(request, existing=ExistingPolicy.ALL), user) if existing else 0,
        _run_count(replace(request, upstream=True), user) if upstream else 0,
    )


def _run_count(request: BackfillRequest, user: User) -> int:
    """Return the number of partitions that a request would run; 0 for a refused request."""
    try:
        return check_backfill(request, user=user).to_materialize
    except (InvalidRequest, PermissionDenied):
        return 0

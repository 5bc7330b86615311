"""Requests that would materialize no partition: the reasons, and the refusal."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from accounts_app.models import User
from backfills_app.models import Backfill, ExistingPolicy
from backfills_app.services.request.backfill_request import BackfillRequest
from backfills_app.services.request.checking import checked
from backfills_app.services.request.creation import insert_backfill
from backfills_app.services.request.plan_limits import PlanLimit
from backfills_app.services.request.planning import plan_of
from backfills_app.services.request.plans import MOST_HOLDERS, BackfillPlan
from slicewise.texts import counted, listed
from slicewise_server.web.request_errors import ConflictingRequest, FieldErrors

# A plan at this limit adds some 30 ms to the request, which is to be answered within 100 ms at any
# size; a plan of 20,000 partitions with as many upstream partitions adds 70 ms.
_EXAMINED = PlanLimit(partitions=5_000, upstream_rows=10_000)


class ObstacleKind(Enum):
    """The kinds of reasons for which no partition would run."""

    EXISTING = "existing"
    IN_PROGRESS = "in progress"
    UPSTREAM = "upstream"


# The field of the request that a kind is about; other kinds are about the whole request.
_FIELDS = {ObstacleKind.EXISTING: "existing", ObstacleKind.UPSTREAM: "upstream"}


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A reason for which no partition would run, and the way out."""

    kind: ObstacleKind
    reason: str
    way_out: str


def request_backfill(
    request: BackfillRequest, *, user: User, submission: str | None = None
) -> Backfill:
    """Create the backfill of a request of a person or a program, unless nothing would run.

    Of a request that has or needs many partitions nothing is read, so that a backfill of any size
    is accepted at once; a backfill with nothing to run succeeds. ``submission`` is a digest of the
    form, if a form sent the request. Raises the errors of check_backfill, and ConflictingRequest
    with the obstacles.
    """
    checked_request = checked(request, user=user)
    obstacles: list[Obstacle] = []
    if _EXAMINED.allows(checked_request.scopes):
        obstacles = obstacles_of(plan_of(request, checked_request), request)
    # The same form, sent at the same time, may have created the backfill meanwhile.
    if obstacles and submission and (earlier := Backfill.objects.of_submission(submission)):
        return earlier
    if obstacles:
        raise refusal_of(obstacles)
    return insert_backfill(request, checked_request, user, submission)


def refusal_of(obstacles: Sequence[Obstacle]) -> ConflictingRequest:
    """Return the error of a request that meets these obstacles, by field of the request."""
    errors = FieldErrors()
    for obstacle in obstacles:
        field = _FIELDS.get(obstacle.kind, "")
        errors.add(field, f"Nothing to run: {obstacle.reason}. {obstacle.way_out}")
    return ConflictingRequest(errors.messages)


def obstacles_of(plan: BackfillPlan, request: BackfillRequest) -> list[Obstacle]:
    """Return the reasons for which no partition would run; none if partitions would run.

    A backfill that starts later may find other runs ended, and upstream partitions materialized:
    only existing partitions are certain to stay.
    """
    if plan.to_materialize:
        return []
    existing = sum(planned.existing for planned in plan.assets)
    in_flight = sum(planned.in_flight for planned in plan.assets)
    missing = sum(planned.upstream_missing for planned in plan.assets)
    starts_later = request.start_at is not None and request.start_at > plan.at
    # By then, upstream partitions may be newer than the existing ones.
    may_become_stale = request.existing == ExistingPolicy.STALE
    if starts_later and (in_flight or missing or may_become_stale):
        return []
    obstacles = []
    if existing:
        with_failed = request.existing == ExistingPolicy.MISSING
        state = "materialized or failed" if with_failed else "materialized"
        obstacles.append(
            Obstacle(
                ObstacleKind.EXISTING,
                f"{_counted(existing)} {state}",
                "Choose “all” to run existing partitions again.",
            )
        )
    if in_flight:
        holders = _holders(plan)
        reason = f"{_counted(in_flight)} in progress in {holders}"
        obstacles.append(
            Obstacle(ObstacleKind.IN_PROGRESS, reason, "Wait for these runs, or cancel these.")
        )
    if missing:
        obstacles.append(_missing_upstream(plan, missing, request))
    return obstacles


def _missing_upstream(plan: BackfillPlan, missing: int, request: BackfillRequest) -> Obstacle:
    nonexistent = sum(planned.upstream_nonexistent for planned in plan.assets)
    needing = f"{counted(missing, 'partition')} need{'s' if missing == 1 else ''}"
    if nonexistent == missing:
        return Obstacle(
            ObstacleKind.UPSTREAM,
            f"{needing} nonexistent upstream partitions",
            "Correct the definition or the mapping.",
        )
    way_out = "Materialize the upstream partitions first."
    if not request.upstream:
        way_out = "Include upstream assets, or materialize the upstream partitions first."
    return Obstacle(ObstacleKind.UPSTREAM, f"{needing} missing upstream partitions", way_out)


def _holders(plan: BackfillPlan) -> str:
    held = [partitions for planned in plan.assets for partitions in planned.in_flight_by]
    names = list(dict.fromkeys(partitions.name for partitions in held))
    return listed(names, MOST_HOLDERS)


def _counted(number: int) -> str:
    return f"{counted(number, 'partition')} {'is' if number == 1 else 'are'}"

"""Operations on backfills: check, create, pause, resume, cancel, retry, change, clone
and delete.
"""

from backfills_app.services.control.bulk import BulkResult, in_bulk
from backfills_app.services.control.changing import change_backfill
from backfills_app.services.control.pausing_and_ending import (
    cancel_backfill,
    delete_backfill,
    pause_backfill,
    require_control,
    resume_backfill,
)
from backfills_app.services.control.retrying_failed import retry_failed
from backfills_app.services.request.backfill_request import BackfillRequest, request_from_text
from backfills_app.services.request.cloning import clone_backfill, clone_fields
from backfills_app.services.request.estimates import FEWEST_RUNS, Estimate
from backfills_app.services.request.missing_upstream import MissingUpstream
from backfills_app.services.request.nothing_to_run import (
    Obstacle,
    ObstacleKind,
    obstacles_of,
    request_backfill,
)
from backfills_app.services.request.periods import named_window
from backfills_app.services.request.plan_limits import PlanLimit
from backfills_app.services.request.planning import check_backfill, run_count_within
from backfills_app.services.request.plans import (
    MOST_HOLDERS,
    BackfillPlan,
    HeldPartitions,
    PlannedAsset,
)

__all__ = [
    "FEWEST_RUNS",
    "MOST_HOLDERS",
    "BackfillPlan",
    "BackfillRequest",
    "BulkResult",
    "Estimate",
    "HeldPartitions",
    "MissingUpstream",
    "Obstacle",
    "ObstacleKind",
    "PlanLimit",
    "PlannedAsset",
    "cancel_backfill",
    "change_backfill",
    "check_backfill",
    "clone_backfill",
    "clone_fields",
    "delete_backfill",
    "in_bulk",
    "named_window",
    "obstacles_of",
    "pause_backfill",
    "request_backfill",
    "request_from_text",
    "require_control",
    "resume_backfill",
    "retry_failed",
    "run_count_within",
]

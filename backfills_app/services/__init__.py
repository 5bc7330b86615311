"""Operations on backfills: check, create, pause, resume, cancel, retry, change, clone
and delete.
"""

from backfills_app.services.bulk import BulkResult, in_bulk
from backfills_app.services.changing import change_backfill
from backfills_app.services.cloning import clone_backfill, clone_fields
from backfills_app.services.control import (
    cancel_backfill,
    delete_backfill,
    pause_backfill,
    require_control,
    resume_backfill,
)
from backfills_app.services.creation import create_backfill
from backfills_app.services.estimates import Estimate
from backfills_app.services.planning import BackfillPlan, PlannedAsset, check_backfill
from backfills_app.services.requests import BackfillRequest, request_from_text
from backfills_app.services.retrying import retry_failed

__all__ = [
    "BackfillPlan",
    "BackfillRequest",
    "BulkResult",
    "Estimate",
    "PlannedAsset",
    "cancel_backfill",
    "change_backfill",
    "check_backfill",
    "clone_backfill",
    "clone_fields",
    "create_backfill",
    "delete_backfill",
    "in_bulk",
    "pause_backfill",
    "request_from_text",
    "require_control",
    "resume_backfill",
    "retry_failed",
]

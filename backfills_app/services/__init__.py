"""What can be done with backfills: check, create, expand, admit, cancel."""

from backfills_app.services.control import cancel_backfill
from backfills_app.services.creation import create_backfill
from backfills_app.services.planning import (
    BackfillPlan,
    Estimate,
    PlannedAsset,
    check_backfill,
)
from backfills_app.services.requests import BackfillRequest, request_from_text

__all__ = [
    "BackfillPlan",
    "BackfillRequest",
    "Estimate",
    "PlannedAsset",
    "cancel_backfill",
    "check_backfill",
    "create_backfill",
    "request_from_text",
]

"""What can be done with backfills: check, create, expand, admit, cancel."""

from backfills_app.services.control import cancel_backfill
from backfills_app.services.creation import create_backfill
from backfills_app.services.requests import (
    BackfillPlan,
    BackfillRequest,
    check_backfill,
    request_from_text,
)

__all__ = [
    "BackfillPlan",
    "BackfillRequest",
    "cancel_backfill",
    "check_backfill",
    "create_backfill",
    "request_from_text",
]

"""Backfills that are created at once, also if they have nothing to run."""

from accounts_app.models import User
from backfills_app.models import Backfill
from backfills_app.services.request.backfill_request import BackfillRequest
from backfills_app.services.request.checking import checked
from backfills_app.services.request.creation import insert_backfill


def create_backfill(
    request: BackfillRequest, *, user: User, submission: str | None = None
) -> Backfill:
    """Check a request, and insert its backfill."""
    return insert_backfill(request, checked(request, user=user), user, submission)

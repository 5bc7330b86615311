"""States and choices of backfills."""

from django.db import models


class BackfillState(models.TextChoices):
    CREATING = "creating", "Creating"
    SCHEDULED = "scheduled", "Scheduled"
    RUNNING = "running", "Running"
    PAUSED = "paused", "Paused"
    CANCELING = "canceling", "Canceling"
    CANCELED = "canceled", "Canceled"
    SUCCEEDED = "succeeded", "Succeeded"
    PARTIALLY_FAILED = "partially_failed", "Partially failed"
    FAILED = "failed", "Failed"


ENDED_STATES = (
    BackfillState.CANCELED,
    BackfillState.SUCCEEDED,
    BackfillState.PARTIALLY_FAILED,
    BackfillState.FAILED,
)
FAILED_STATES = (BackfillState.PARTIALLY_FAILED, BackfillState.FAILED)


class ExistingPolicy(models.TextChoices):
    """The partitions of the range that a backfill materializes, by their status."""

    MISSING = "missing", "Missing only"
    MISSING_AND_FAILED = "missing_and_failed", "Missing and failed"
    STALE = "stale", "Missing, failed, stale or from older code"
    ALL = "all", "All, including materialized"


class BackfillOrder(models.TextChoices):
    """The order in which a backfill materializes its partitions."""

    OLDEST = "oldest", "Oldest first"
    NEWEST = "newest", "Newest first"
    LISTED = "listed", "As listed"


class AssetRole(models.TextChoices):
    """The reason why a backfill materializes an asset."""

    CHOSEN = "chosen", "Chosen"
    UPSTREAM = "upstream", "Upstream"
    DOWNSTREAM = "downstream", "Downstream"


def a_run_for_each() -> str:
    """Return the strategy of an asset that declares none."""
    return "partition"

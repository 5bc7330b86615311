"""Models of backfills."""

from backfills_app.models.backfills import Backfill, BackfillAsset, BackfillQuerySet
from backfills_app.models.partitions import BackfillPartition
from backfills_app.models.pending import EndedRun, PendingControl
from backfills_app.models.states import (
    ENDED_STATES,
    FAILED_STATES,
    AssetRole,
    BackfillOrder,
    BackfillState,
    ExistingPolicy,
    a_run_for_each,
)

__all__ = [
    "ENDED_STATES",
    "FAILED_STATES",
    "AssetRole",
    "Backfill",
    "BackfillAsset",
    "BackfillOrder",
    "BackfillPartition",
    "BackfillQuerySet",
    "BackfillState",
    "EndedRun",
    "ExistingPolicy",
    "PendingControl",
    "a_run_for_each",
]

"""Backfills as JSON, for the API and for commands with ``--json``."""

from backfills_app.serializers.backfills import (
    COUNTS,
    BackfillAssetSerializer,
    BackfillDetailSerializer,
    BackfillPartitionSerializer,
    BackfillSerializer,
)
from backfills_app.serializers.outcomes import OutcomeSerializer, outcome_of
from backfills_app.serializers.plans import BackfillPlanSerializer
from backfills_app.serializers.requests import (
    BackfillCloneSerializer,
    BackfillRequestSerializer,
    BulkSerializer,
    ChangeSerializer,
)

__all__ = [
    "COUNTS",
    "BackfillAssetSerializer",
    "BackfillCloneSerializer",
    "BackfillDetailSerializer",
    "BackfillPartitionSerializer",
    "BackfillPlanSerializer",
    "BackfillRequestSerializer",
    "BackfillSerializer",
    "BulkSerializer",
    "ChangeSerializer",
    "OutcomeSerializer",
    "outcome_of",
]

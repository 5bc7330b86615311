"""Serializers of assets, partitions and runs, for the API and for commands with ``--json``."""

from assets_app.serializers.assets import (
    AssetDetailSerializer,
    AssetSerializer,
    MaterializeSerializer,
    MissedSerializer,
    PartitionSerializer,
    RequestSerializer,
    ScheduleSerializer,
    ScheduleTruncationSerializer,
    StrategyField,
    TickSerializer,
)
from assets_app.serializers.events import ReportedWriteSerializer, WriteReportSerializer
from assets_app.serializers.keys import AddedKeysSerializer, KeysSerializer, KeyTextsSerializer
from assets_app.serializers.orphans import (
    OrphanIdsSerializer,
    OrphanPageSerializer,
    OrphanRemovalSerializer,
)
from assets_app.serializers.runs import (
    AttemptSerializer,
    AttemptStepSerializer,
    CodeVersionSerializer,
    LogEntrySerializer,
    LogPageSerializer,
    RunDetailSerializer,
    RunPartitionSerializer,
    RunSerializer,
    ValidationResultSerializer,
)
from assets_app.serializers.verifying import SelectionSerializer, VerificationSerializer

__all__ = [
    "AddedKeysSerializer",
    "AssetDetailSerializer",
    "AssetSerializer",
    "AttemptSerializer",
    "AttemptStepSerializer",
    "CodeVersionSerializer",
    "KeyTextsSerializer",
    "KeysSerializer",
    "LogEntrySerializer",
    "LogPageSerializer",
    "MaterializeSerializer",
    "MissedSerializer",
    "OrphanIdsSerializer",
    "OrphanPageSerializer",
    "OrphanRemovalSerializer",
    "PartitionSerializer",
    "ReportedWriteSerializer",
    "RequestSerializer",
    "RunDetailSerializer",
    "RunPartitionSerializer",
    "RunSerializer",
    "ScheduleSerializer",
    "ScheduleTruncationSerializer",
    "SelectionSerializer",
    "StrategyField",
    "TickSerializer",
    "ValidationResultSerializer",
    "VerificationSerializer",
    "WriteReportSerializer",
]

"""Assets, partitions and runs as JSON, for the API and for commands with ``--json``."""

from assets_app.serializers.assets import (
    AssetDetailSerializer,
    AssetSerializer,
    LeftOutSerializer,
    MaterializeSerializer,
    PartitionSerializer,
    RequestSerializer,
    ScheduleSerializer,
    StrategyField,
    TickSerializer,
)
from assets_app.serializers.events import ReportedWriteSerializer, WriteReportSerializer
from assets_app.serializers.keys import AddedKeysSerializer, KeysSerializer, KeyTextsSerializer
from assets_app.serializers.runs import (
    AttemptSerializer,
    LogEntrySerializer,
    LogPageSerializer,
    RunDetailSerializer,
    RunSerializer,
    ValidationResultSerializer,
)

__all__ = [
    "AddedKeysSerializer",
    "AssetDetailSerializer",
    "AssetSerializer",
    "AttemptSerializer",
    "KeyTextsSerializer",
    "KeysSerializer",
    "LeftOutSerializer",
    "LogEntrySerializer",
    "LogPageSerializer",
    "MaterializeSerializer",
    "PartitionSerializer",
    "ReportedWriteSerializer",
    "RequestSerializer",
    "RunDetailSerializer",
    "RunSerializer",
    "ScheduleSerializer",
    "StrategyField",
    "TickSerializer",
    "ValidationResultSerializer",
    "WriteReportSerializer",
]

"""What is declared, which slices are there, and the runs that make them."""

from assets_app.models.catalogue import (
    DISCOVERY,
    Asset,
    AssetDependency,
    Bundle,
    BundleVersion,
    Producer,
    ProducerVersion,
)
from assets_app.models.gateways import Gateway
from assets_app.models.hooks import RunHook
from assets_app.models.runs import (
    AttemptInput,
    AttemptOutlet,
    Run,
    RunAttempt,
    RunGroup,
    RunLog,
    RunNeed,
    RunPartition,
)
from assets_app.models.scheduling import LeftOut, Outbox, Schedule, ScheduleTick
from assets_app.models.slices import AssetPartition, Materialization, PartitionCount, WriteReport
from assets_app.models.states import (
    ACTIVE_STATES,
    TERMINAL_STATES,
    TRANSITIONS,
    AttemptOutcome,
    FailureKind,
    GroupKind,
    HookOption,
    PartitionState,
    Queue,
    RunState,
    SkipReason,
    TickReason,
    Trigger,
)
from assets_app.models.validations import ValidationResult

__all__ = [
    "ACTIVE_STATES",
    "DISCOVERY",
    "TERMINAL_STATES",
    "TRANSITIONS",
    "Asset",
    "AssetDependency",
    "AssetPartition",
    "AttemptInput",
    "AttemptOutcome",
    "AttemptOutlet",
    "Bundle",
    "BundleVersion",
    "FailureKind",
    "Gateway",
    "GroupKind",
    "HookOption",
    "LeftOut",
    "Materialization",
    "Outbox",
    "PartitionCount",
    "PartitionState",
    "Producer",
    "ProducerVersion",
    "Queue",
    "Run",
    "RunAttempt",
    "RunGroup",
    "RunHook",
    "RunLog",
    "RunNeed",
    "RunPartition",
    "RunState",
    "Schedule",
    "ScheduleTick",
    "SkipReason",
    "TickReason",
    "Trigger",
    "ValidationResult",
    "WriteReport",
]

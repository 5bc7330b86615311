"""Models of declarations, partitions, schedules and runs."""

from assets_app.models.attempts import AttemptInput, AttemptOutlet, Lease, RunAttempt, RunLog
from assets_app.models.catalogue import (
    Asset,
    AssetDependency,
    Bundle,
    BundleVersion,
    Producer,
    ProducerVersion,
)
from assets_app.models.gateways import Gateway
from assets_app.models.hooks import RunHook
from assets_app.models.lateness import (
    FreshnessWatch,
    LateEffect,
    LateInput,
    LatePartition,
    LateReason,
)
from assets_app.models.partitions import (
    AssetPartition,
    Materialization,
    PartitionCount,
    WriteReport,
)
from assets_app.models.queue_heads import QueueChange, QueueHead
from assets_app.models.runs import AwaitedPartition, FrozenUpstream, Run, RunGroup, RunPartition
from assets_app.models.scheduling import Outbox, Schedule, ScheduleTick, ScheduleTruncation
from assets_app.models.states import (
    ACTIVE_STATES,
    SKIPS_WITHOUT_FAILURE,
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
    StepKind,
    StepState,
    TickReason,
    Trigger,
)
from assets_app.models.steps import AttemptStep
from assets_app.models.targets import DISCOVERY, Target
from assets_app.models.validations import ValidationResult

__all__ = [
    "ACTIVE_STATES",
    "DISCOVERY",
    "SKIPS_WITHOUT_FAILURE",
    "TERMINAL_STATES",
    "TRANSITIONS",
    "Asset",
    "AssetDependency",
    "AssetPartition",
    "AttemptInput",
    "AttemptOutcome",
    "AttemptOutlet",
    "AttemptStep",
    "AwaitedPartition",
    "Bundle",
    "BundleVersion",
    "FailureKind",
    "FreshnessWatch",
    "FrozenUpstream",
    "Gateway",
    "GroupKind",
    "HookOption",
    "LateEffect",
    "LateInput",
    "LatePartition",
    "LateReason",
    "Lease",
    "Materialization",
    "Outbox",
    "PartitionCount",
    "PartitionState",
    "Producer",
    "ProducerVersion",
    "Queue",
    "QueueChange",
    "QueueHead",
    "Run",
    "RunAttempt",
    "RunGroup",
    "RunHook",
    "RunLog",
    "RunPartition",
    "RunState",
    "Schedule",
    "ScheduleTick",
    "ScheduleTruncation",
    "SkipReason",
    "StepKind",
    "StepState",
    "Target",
    "TickReason",
    "Trigger",
    "ValidationResult",
    "WriteReport",
]

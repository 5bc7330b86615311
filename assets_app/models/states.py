"""States with labels, and the one table of allowed transitions.

The database holds the same table.
"""

from django.db.models import TextChoices


class RunState(TextChoices):
    WAITING = "waiting", "Waiting"
    QUEUED = "queued", "Queued"
    DISPATCHED = "dispatched", "Dispatched"
    RUNNING = "running", "Running"
    PUBLISHING = "publishing", "Publishing"
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    CANCELING = "canceling", "Canceling"
    CANCELED = "canceled", "Canceled"
    SKIPPED = "skipped", "Skipped"


_S = RunState
TRANSITIONS: dict[RunState, frozenset[RunState]] = {
    _S.WAITING: frozenset({_S.QUEUED, _S.CANCELED, _S.SKIPPED, _S.FAILED}),
    # Canceled at once, unless Spark may still work for an attempt that lost its worker.
    _S.QUEUED: frozenset({_S.DISPATCHED, _S.CANCELING, _S.CANCELED, _S.SKIPPED, _S.FAILED}),
    # Back to queued when no gateway is left, or the chosen gateway cannot reach Spark; canceled as
    # from queued.
    _S.DISPATCHED: frozenset({_S.RUNNING, _S.QUEUED, _S.CANCELING, _S.CANCELED, _S.FAILED}),
    # Back to queued is another attempt: after a failure of the platform, or of the code where
    # retries are left.
    _S.RUNNING: frozenset({_S.PUBLISHING, _S.FAILED, _S.CANCELING, _S.QUEUED}),
    # A publication that has begun is finished, by any worker; the run cannot be canceled any more.
    _S.PUBLISHING: frozenset({_S.SUCCEEDED, _S.FAILED}),
    _S.CANCELING: frozenset({_S.CANCELED}),
    _S.SUCCEEDED: frozenset(),
    _S.FAILED: frozenset({_S.QUEUED}),
    _S.CANCELED: frozenset({_S.QUEUED}),
    _S.SKIPPED: frozenset({_S.QUEUED}),
}
TERMINAL_STATES = (_S.SUCCEEDED, _S.FAILED, _S.CANCELED, _S.SKIPPED)
# Runs in these states take a slot.
ACTIVE_STATES = (_S.DISPATCHED, _S.RUNNING, _S.PUBLISHING, _S.CANCELING)


class PartitionState(TextChoices):
    """The last result of a partition. ``held_by`` alone says that a run holds the partition now."""

    MISSING = "missing", "Missing"
    MATERIALIZED = "materialized", "Materialized"
    FAILED = "failed", "Failed"
    CANCELED = "canceled", "Canceled"
    SKIPPED = "skipped", "Skipped"


class Trigger(TextChoices):
    SCHEDULE = "schedule", "Schedule"
    UPSTREAM = "upstream", "Upstream"
    MANUAL = "manual", "Manual"
    BACKFILL = "backfill", "Backfill"


class Queue(TextChoices):
    SCHEDULED = "scheduled", "Scheduled"
    BACKFILL = "backfill", "Backfill"


class GroupKind(TextChoices):
    REQUEST = "request", "Request"
    SCHEDULE = "schedule", "Schedule"
    BACKFILL = "backfill", "Backfill"


class AttemptOutcome(TextChoices):
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    CANCELED = "canceled", "Canceled"
    LOST = "lost", "Lost"


class HookOption(TextChoices):
    """The options of an asset for functions that are called after a run."""

    ON_SUCCESS = "on_success", "After a run that has succeeded"
    ON_FAILURE = "on_failure", "After a run that has failed"


class StepKind(TextChoices):
    SETUP = "setup", "Set-up"
    FUNCTION = "function", "Function"
    TEARDOWN = "teardown", "Tear-down"


class StepState(TextChoices):
    RUNNING = "running", "Running"
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    STOPPED = "stopped", "Stopped"
    NOT_RUN = "not_run", "Not run"


class FailureKind(TextChoices):
    """The cause of a failure: the asset's code; the platform, which has retries of its own; or data
    that was lost or changed in its place, which no retry brings back.
    """

    CODE = "code", "The asset's code"
    PLATFORM = "platform", "The platform"
    DATA = "data", "The data that it reads"


class TickReason(TextChoices):
    """Why a tick of a schedule queued nothing; `SkipReason` is about runs and partitions."""

    NOTHING_ENDED = "nothing_ended", "Nothing new since the last tick"
    EXISTS = "exists", "Already materialized"
    IN_FLIGHT = "in_flight", "Already in progress"
    UPSTREAM = "upstream", "Upstream is missing or not newer"


class SkipReason(TextChoices):
    """Why a run, or a partition of a backfill, ended without execution."""

    # At most 20 characters; CONTRIBUTING.md lists the places that a new reason concerns.
    IN_FLIGHT = "in_flight", "Already in progress"
    EXISTS = "exists", "Already materialized"
    UPSTREAM_FAILED = "upstream_failed", "Upstream failed"
    UPSTREAM_MISSING = "upstream_missing", "Upstream missing"
    UPSTREAM_NONEXISTENT = "upstream_nonexistent", "Upstream does not exist"
    WAIT_TIMEOUT = "wait_timeout", "Timed out waiting"
    NO_SUCH_PARTITION = "no_such_partition", "Partition does not exist"


# A skip for one of these reasons is no failure of a backfill; a skip for any other reason is.
SKIPS_WITHOUT_FAILURE = (SkipReason.EXISTS, SkipReason.IN_FLIGHT)

"""Runs: run groups, runs, attempts, the partitions that runs materialize, and printed output."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from assets_app.models.catalogue import Asset, ProducerVersion
from assets_app.models.partitions import AssetPartition
from assets_app.models.states import (
    TERMINAL_STATES,
    FailureKind,
    GroupKind,
    Queue,
    RunState,
    SkipReason,
    Trigger,
)
from partitions_app.models import PartitionDefinition
from slicewise.declaring import PRIORITY_LIMIT


class RunGroup(models.Model):
    """The settings that a backfill, or the request of a person, gives all its runs.

    Dispatch reads the group and knows no backfill.
    """

    kind = models.CharField(max_length=10, choices=GroupKind)
    label = models.CharField(max_length=300, blank=True)
    queue = models.CharField(max_length=10, choices=Queue, default=Queue.SCHEDULED)
    priority = models.IntegerField(default=0)
    max_active_runs = models.PositiveIntegerField(null=True)
    paused = models.BooleanField(default=False)
    # Keys that a request named and did not get, since another run was materializing the partitions.
    in_flight = models.JSONField(default=list)
    # Keys of missing partitions that precede the partitions that a request named.
    earlier_missing = models.JSONField(default=list)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(max_active_runs__isnull=True) | Q(max_active_runs__gt=0),
                name="group_max_active_runs_positive",
            ),
            models.CheckConstraint(
                condition=Q(priority__range=(-PRIORITY_LIMIT, PRIORITY_LIMIT)),
                name="group_priority_in_bounds",
            ),
        )

    def __str__(self) -> str:
        return self.label or f"{self.kind} {self.pk}"


class FrozenUpstream(models.Model):
    """The partition definition of an upstream asset when a backfill was accepted, or when the
    backfill was retried with the newest code.

    Runs of the group with that code read the upstream asset by this definition, even if the asset
    has another definition by then. Runs without such a row read by the present definition.
    """

    # The unique index begins with the group, and serves as its index.
    group = models.ForeignKey(
        RunGroup, on_delete=models.CASCADE, related_name="frozen_upstream", db_index=False
    )
    producer_version = models.ForeignKey(
        ProducerVersion, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    asset = models.ForeignKey(Asset, on_delete=models.CASCADE, related_name="+", db_index=False)
    # None for an asset that was not partitioned.
    partition_definition = models.ForeignKey(
        PartitionDefinition, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("group", "producer_version", "asset"), name="frozen_upstream_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.group_id} {self.producer_version_id} {self.asset_id}"


class RunQuerySet(models.QuerySet["Run"]):
    """Runs, with the related rows that lists and pages show."""

    def listed(self) -> "RunQuerySet":
        """Join the rows that a list shows of each run.

        The spec of the partition definition is left out: a definition is read once for the whole
        process.
        """
        rows = self.select_related("asset__partition_definition", "group", "requested_by")
        return rows.defer("asset__partition_definition__spec")

    def materializing(self, asset: Asset) -> "RunQuerySet":
        """Select the runs that materialize the asset, alone or together with other assets."""
        if not asset.materialized_with:
            return self.filter(asset=asset)
        return self.filter(asset__name__in=[asset.name, *asset.materialized_with])


class Run(models.Model):
    """One execution of the function of a producer, for one partition or more.

    The row is the truth; messages are nudges.
    """

    group = models.ForeignKey(
        RunGroup, on_delete=models.PROTECT, related_name="runs", db_index=False
    )
    producer_version = models.ForeignKey(
        ProducerVersion, on_delete=models.PROTECT, related_name="+"
    )
    # The requested outlet, for lists and titles; the partitions of the run cover all outlets.
    asset = models.ForeignKey(Asset, on_delete=models.PROTECT, related_name="runs", db_index=False)
    trigger = models.CharField(max_length=10, choices=Trigger)
    # The tick of a schedule that requested the run, as long as the tick is on record.
    tick = models.ForeignKey(
        "ScheduleTick", null=True, on_delete=models.SET_NULL, related_name="runs", db_index=False
    )
    queue = models.CharField(max_length=10, choices=Queue)
    state = models.CharField(
        max_length=10, choices=RunState, default=RunState.QUEUED, db_collation="C"
    )
    # Canonical text of the selection grammar, or the first and last key of a long one.
    selection = models.TextField(blank=True)
    partition_count = models.PositiveIntegerField()
    params = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)
    queued_at = models.DateTimeField(null=True)
    dispatched_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    # A retry waits until this time; dispatch sets the column to null when the time has come.
    not_before = models.DateTimeField(null=True)
    attempt_count = models.PositiveIntegerField(default=0)
    code_failures = models.PositiveIntegerField(default=0)
    platform_failures = models.PositiveIntegerField(default=0)
    # The failures among these in which the process or the worker ended in the middle of the run.
    lost_attempts = models.PositiveIntegerField(default=0, db_default=0)
    error = models.TextField(blank=True)
    error_kind = models.CharField(max_length=10, choices=FailureKind, blank=True)
    skip_reason = models.CharField(
        max_length=20, choices=SkipReason, blank=True, default="", db_default=""
    )
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.CheckConstraint(condition=Q(state__in=RunState.values), name="run_state_known"),
            models.CheckConstraint(
                condition=Q(state__in=TERMINAL_STATES, ended_at__isnull=False)
                | (~Q(state__in=TERMINAL_STATES) & Q(ended_at__isnull=True)),
                name="run_ended_when_terminal",
            ),
        )
        indexes = (
            models.Index(fields=("group", "id"), name="run_by_group"),
            models.Index(fields=("asset", "-id"), name="run_by_asset"),
            models.Index(
                fields=("queue", "group", "producer_version", "id"),
                condition=Q(state="queued", not_before__isnull=True),
                name="run_ready",
            ),
            models.Index(
                fields=("not_before",),
                condition=Q(state="queued", not_before__isnull=False),
                name="run_delayed",
            ),
            models.Index(
                fields=("state", "id"),
                condition=~Q(state__in=TERMINAL_STATES),
                name="run_unfinished",
            ),
            # An estimate passes over runs with many more or fewer partitions inside the index.
            models.Index(
                fields=("asset", "-id", "partition_count"),
                condition=Q(state="succeeded"),
                name="run_succeeded",
            ),
            models.Index(fields=("-ended_at",), condition=Q(state="failed"), name="run_failed"),
            models.Index(
                fields=("group", "id"), condition=Q(state="failed"), name="run_failed_by_group"
            ),
            models.Index(
                fields=("tick", "id"), condition=Q(tick__isnull=False), name="run_by_tick"
            ),
            models.Index(fields=("-id",), condition=~Q(error=""), name="run_with_error"),
            models.Index(
                fields=("group", "-id"), condition=~Q(error=""), name="run_with_error_by_group"
            ),
        )

    def __str__(self) -> str:
        return f"run {self.pk}"


class RunPartition(models.Model):
    """One partition that a run materializes, and the result."""

    class State(models.TextChoices):
        PENDING = "pending", "Pending"
        SUCCEEDED = "succeeded", "Succeeded"
        FAILED = "failed", "Failed"
        CANCELED = "canceled", "Canceled"
        SKIPPED = "skipped", "Skipped"

    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="partitions", db_index=False
    )
    partition = models.ForeignKey(
        AssetPartition, on_delete=models.CASCADE, related_name="run_partitions"
    )
    position = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State, default=State.PENDING)
    # Folder below the target, once staged.
    path = models.TextField(blank=True)
    rows = models.BigIntegerField(null=True)
    bytes = models.BigIntegerField(null=True)
    # Why the partition was not materialized, where the reason concerns this partition and not the
    # whole run.
    error = models.TextField(blank=True, default="", db_default="")

    class Meta:
        ordering = ("position",)
        constraints = (
            models.UniqueConstraint(fields=("run", "position"), name="run_partition_position"),
            models.UniqueConstraint(fields=("run", "partition"), name="run_partition_once"),
        )

    def __str__(self) -> str:
        return f"run {self.run_id} partition {self.partition_id}"


class AwaitedPartition(models.Model):
    """A partition that a run waits for: the partition before a partition of the run."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="awaited_partitions")
    asset = models.ForeignKey(Asset, on_delete=models.CASCADE, related_name="+", db_index=False)
    identity = models.CharField(max_length=16, db_collation="C")
    key = models.CharField(max_length=1000, db_collation="C")
    # When to look whether the run still waits: at once where the run that held the partition has
    # ended, else after growing pauses. Null once the run waits no longer.
    look_at = models.DateTimeField(null=True)

    class Meta:
        indexes = (
            models.Index(
                fields=("look_at",),
                condition=Q(look_at__isnull=False),
                name="awaited_partition_to_look_at",
            ),
            models.Index(
                fields=("asset", "identity", "key"),
                condition=Q(look_at__isnull=False),
                name="awaited_partition_by_key",
            ),
        )

    def __str__(self) -> str:
        return f"run {self.run_id} waits for {self.asset_id} {self.key}"

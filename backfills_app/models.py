"""Requests to materialize partitions of the past (the backfill table of the source design, and the
intent per slice).
"""

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from assets_app.models import (
    Asset,
    AssetPartition,
    BundleVersion,
    ProducerVersion,
    Run,
    RunGroup,
    SkipReason,
)
from backfills_app.queries.chosen import chosen_text
from backfills_app.queries.listing import BackfillQuerySet


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


class ExistingPolicy(models.TextChoices):
    """Which partitions of the range a backfill makes."""

    MISSING = "missing", "Missing only"
    MISSING_AND_FAILED = "missing_and_failed", "Missing and failed"
    STALE = "stale", "Missing, failed, stale or from older code"
    ALL = "all", "All, including materialized"


class BackfillOrder(models.TextChoices):
    """Which partitions of a backfill come first."""

    OLDEST = "oldest", "Oldest first"
    NEWEST = "newest", "Newest first"
    LISTED = "listed", "As listed"


class AssetRole(models.TextChoices):
    """Why a backfill makes an asset."""

    CHOSEN = "chosen", "Chosen"
    UPSTREAM = "upstream", "Upstream"
    DOWNSTREAM = "downstream", "Downstream"


def a_run_for_each() -> str:
    """Return the strategy of an asset that declares none."""
    return "partition"


class Backfill(models.Model):
    """One person's request for a range of partitions.

    Column names are those of the source design where it has them.
    """

    name = models.CharField(max_length=250, unique=True)
    # The first chosen asset, one with time where there is such a one; all are in BackfillAsset.
    asset = models.ForeignKey(Asset, on_delete=models.PROTECT, related_name="backfills")
    state = models.CharField(
        max_length=16, choices=BackfillState, default=BackfillState.CREATING, db_collation="C"
    )
    description = models.CharField(max_length=1000, blank=True)
    # Half-open hull of the windows asked for.
    start_date = models.DateTimeField()
    end_date = models.DateTimeField()
    # Its partitions, as text of the selection grammar.
    logical_dates = models.TextField()
    # How assets and partitions were chosen, by the names of the request's fields, where that was
    # more than partitions of one asset: several assets, a group, a tag, what is upstream.
    chosen_by = models.JSONField(default=dict)
    params = models.JSONField(default=dict)
    max_active_runs = models.PositiveIntegerField(validators=[MinValueValidator(1)])
    # As the asset has it at submission, or as the request says: "partition", "range" or a number.
    strategy = models.JSONField()
    order = models.CharField(
        max_length=10, choices=BackfillOrder, default=BackfillOrder.OLDEST, db_default="oldest"
    )
    # Whether a run of several partitions may reach over some that it does not make.
    allow_holes = models.BooleanField(default=False, db_default=False)
    existing = models.CharField(
        max_length=20, choices=ExistingPolicy, default=ExistingPolicy.MISSING_AND_FAILED
    )
    # Its runs may start from then on; null for at once.
    scheduled_date = models.DateTimeField(null=True)
    delete_date = models.DateTimeField(null=True)
    relative_fileloc = models.CharField(max_length=1000, blank=True)
    # Source text as frozen at submission; what runs is the version in BackfillAsset.
    origin_code = models.TextField(blank=True)
    # The snapshot of the asset's bundle that the code was frozen from.
    code_version = models.ForeignKey(
        BundleVersion, null=True, on_delete=models.PROTECT, related_name="+"
    )
    submitted_at = models.DateTimeField()
    submitted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="backfills"
    )
    updated_at = models.DateTimeField(auto_now=True)
    deleted = models.BooleanField(default=False)
    run_start_date = models.DateTimeField(null=True)
    run_end_date = models.DateTimeField(null=True)
    group = models.OneToOneField(RunGroup, on_delete=models.PROTECT, related_name="backfill")
    error = models.TextField(blank=True)
    # Why it does not go on at present, and when that is tried again; it may be given up in the end.
    stalled_since = models.DateTimeField(null=True)
    stalled_error = models.TextField(blank=True, default="", db_default="")
    try_again_at = models.DateTimeField(null=True)

    objects = BackfillQuerySet.as_manager()

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.CheckConstraint(
                condition=Q(state__in=BackfillState.values), name="backfill_state_known"
            ),
            models.CheckConstraint(condition=Q(max_active_runs__gt=0), name="backfill_active_runs"),
            models.CheckConstraint(
                condition=Q(order__in=BackfillOrder.values), name="backfill_order_known"
            ),
            models.CheckConstraint(
                condition=Q(start_date__lt=models.F("end_date")), name="backfill_range_not_empty"
            ),
            models.CheckConstraint(
                condition=Q(state__in=ENDED_STATES, run_end_date__isnull=False)
                | (~Q(state__in=ENDED_STATES) & Q(run_end_date__isnull=True)),
                name="backfill_ended_when_terminal",
            ),
        )
        indexes = (
            models.Index(
                fields=("id",), condition=~Q(state__in=ENDED_STATES), name="backfill_unfinished"
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def title(self) -> str:
        """The chosen assets in words, as the person chose them: ``group flights``."""
        return chosen_text(self.chosen_by, self.asset.name)

    @property
    def is_of_one(self) -> bool:
        """Whether one asset was chosen by its name."""
        return self.title == self.asset.name

    @property
    def paused(self) -> bool:
        """Whether a person has paused it; a cancellation pauses its group and does not count."""
        return self.group.paused and self.state != BackfillState.CANCELING

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to it by itself."""
        return self.state in ENDED_STATES


class BackfillAsset(models.Model):
    """One asset of a backfill, at the version frozen at submission, and how its partitions stand.

    The counts are kept with every transition, in its transaction; the check makes a backfill that
    says more than its partitions impossible.
    """

    backfill = models.ForeignKey(Backfill, on_delete=models.CASCADE, related_name="assets")
    asset = models.ForeignKey(Asset, on_delete=models.PROTECT, related_name="+")
    producer_version = models.ForeignKey(
        ProducerVersion, on_delete=models.PROTECT, related_name="+"
    )
    # Upstream before downstream.
    position = models.PositiveIntegerField(default=0)
    role = models.CharField(
        max_length=10, choices=AssetRole, default=AssetRole.CHOSEN, db_default="chosen"
    )
    # Its partitions, as text of the selection grammar (in the order of the request where that is
    # "listed"); how they are cut into runs; what its function is given.
    selection = models.TextField(blank=True, default="")
    strategy = models.JSONField(default=a_run_for_each)
    params = models.JSONField(default=dict)
    # How it was cut when the request was accepted, as JSON, empty if not at all: what is counted by
    # places must not move. Null from before this was kept: as the version says.
    partition = models.JSONField(null=True)
    # Of the edge by which it follows; null for overlap, and where it does not follow.
    mapping = models.JSONField(null=True)
    # How many partitions the request names, and how many of these are rows by now.
    total = models.PositiveIntegerField(default=0)
    expanded = models.PositiveIntegerField(default=0)
    waiting = models.PositiveIntegerField(default=0)
    active = models.PositiveIntegerField(default=0)
    succeeded = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    canceled = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ("position",)
        constraints = (
            models.UniqueConstraint(fields=("backfill", "asset"), name="backfill_asset_once"),
            models.CheckConstraint(
                condition=Q(role__in=AssetRole.values), name="backfill_asset_role_known"
            ),
            models.CheckConstraint(
                condition=Q(
                    expanded=models.F("waiting")
                    + models.F("active")
                    + models.F("succeeded")
                    + models.F("failed")
                    + models.F("canceled")
                    + models.F("skipped")
                ),
                name="backfill_counts_add_up",
            ),
            models.CheckConstraint(
                condition=Q(expanded__lte=models.F("total")), name="backfill_expanded_within_total"
            ),
        )

    def __str__(self) -> str:
        return f"{self.backfill_id} {self.asset_id}"


class BackfillPartition(models.Model):
    """The intent to make one partition: a row from expansion on, a claim and a run only from
    admission on.
    """

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        ACTIVE = "active", "Active"
        SUCCEEDED = "succeeded", "Succeeded"
        FAILED = "failed", "Failed"
        CANCELED = "canceled", "Canceled"
        SKIPPED = "skipped", "Skipped"

    backfill_asset = models.ForeignKey(
        BackfillAsset, on_delete=models.CASCADE, related_name="partitions", db_index=False
    )
    # Place in the order of the asset's partitions: by time, then segment.
    position = models.PositiveIntegerField()
    # What is made before that: the place of its part of the selection where the order is "listed".
    rank = models.PositiveIntegerField(default=0, db_default=0)
    # Whether all that it needs of this backfill has come to an end. Nothing else is admitted.
    ready = models.BooleanField(default=True, db_default=True)
    key = models.CharField(max_length=1000, db_collation="C")
    window_start = models.DateTimeField(null=True)
    window_end = models.DateTimeField(null=True)
    segment = models.CharField(max_length=1000, db_collation="C", blank=True, default="")
    bucket = models.DateField(null=True)
    state = models.CharField(max_length=10, choices=State, default=State.WAITING, db_collation="C")
    reason = models.CharField(max_length=20, choices=SkipReason, blank=True, default="")
    slice = models.ForeignKey(
        AssetPartition, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    run = models.ForeignKey(
        Run,
        null=True,
        on_delete=models.SET_NULL,
        related_name="backfill_partitions",
        db_index=False,
    )

    class Meta:
        ordering = ("position",)
        constraints = (
            models.UniqueConstraint(
                fields=("backfill_asset", "position"), name="backfill_partition_once"
            ),
            models.CheckConstraint(
                condition=Q(state="skipped") ^ Q(reason=""), name="backfill_skip_has_reason"
            ),
        )
        indexes = (
            models.Index(
                fields=("backfill_asset", "ready", "rank", "position"),
                condition=Q(state="waiting"),
                name="backfill_partition_waiting",
            ),
            # Why some were skipped is told of a million in no time.
            models.Index(
                fields=("backfill_asset", "reason"),
                condition=Q(state="skipped"),
                name="backfill_partition_skipped",
            ),
            models.Index(
                fields=("run",), condition=Q(run__isnull=False), name="backfill_partition_run"
            ),
        )

    def __str__(self) -> str:
        return f"{self.backfill_asset_id} {self.key}"


class PendingControl(models.Model):
    """A request about a backfill that the bulk worker has still to carry out.

    The insert waits for no lock. While there is such a row, no partition of the backfill is
    admitted. Rows of the same verb are carried out together.
    """

    class Verb(models.TextChoices):
        WITHDRAW = "withdraw", "Withdraw runs that have not begun"
        RETRY = "retry", "Retry"
        LOOK_AGAIN = "look_again", "Look again what waits for what"

    backfill = models.ForeignKey(Backfill, on_delete=models.CASCADE, related_name="pending")
    verb = models.CharField(max_length=10, choices=Verb)
    # Of a retry, whether it takes the newest code, and canceled partitions too.
    is_newest_code = models.BooleanField(default=False)
    is_canceled_too = models.BooleanField(default=False)

    class Meta:
        ordering = ("id",)
        constraints = (
            models.CheckConstraint(
                condition=Q(verb__in=("withdraw", "retry", "look_again")),
                name="pending_control_verb_known",
            ),
        )

    def __str__(self) -> str:
        return f"{self.backfill_id} {self.verb}"


class EndedRun(models.Model):
    """A run that has ended, or that a backfill has left partitions to: once it has ended, the next
    admission sees what follows it there.

    Written in the transaction that ends the run, since two runs that end at once would each not see
    that the other one has ended; and in the one that leaves partitions to another's run, since that
    run may be ending just then. Never unique: an insert waits for nobody.
    """

    backfill = models.ForeignKey(Backfill, on_delete=models.CASCADE, related_name="ended_runs")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")

    def __str__(self) -> str:
        return f"{self.backfill_id} run {self.run_id}"

"""Backfills: requests to materialize partitions of the past (the backfill table of the source
design), with a row for each asset and a row for each partition.
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


class Backfill(models.Model):
    """A person's request to materialize a range of partitions.

    Column names are the names of the source design where the source design has the column.
    """

    name = models.CharField(max_length=250, unique=True)
    # The first chosen asset with time, or the first one if none has time; BackfillAsset has all
    # assets.
    asset = models.ForeignKey(Asset, on_delete=models.PROTECT, related_name="backfills")
    state = models.CharField(
        max_length=16, choices=BackfillState, default=BackfillState.CREATING, db_collation="C"
    )
    description = models.CharField(max_length=1000, blank=True)
    # Half-open hull of the requested windows.
    start_date = models.DateTimeField()
    end_date = models.DateTimeField()
    # The partitions, as text of the selection grammar.
    logical_dates = models.TextField()
    # How assets and partitions were chosen, by the names of the request's fields. Empty for
    # partitions of one asset; set for several assets, a group, a tag, and for a request with
    # upstream assets.
    chosen_by = models.JSONField(default=dict)
    params = models.JSONField(default=dict)
    max_active_runs = models.PositiveIntegerField(validators=[MinValueValidator(1)])
    # The asset's strategy at submission, or the strategy of the request: "partition", "range" or a
    # number.
    strategy = models.JSONField()
    order = models.CharField(
        max_length=10, choices=BackfillOrder, default=BackfillOrder.OLDEST, db_default="oldest"
    )
    # Whether a run of several partitions may reach over partitions that the run does not
    # materialize.
    allow_holes = models.BooleanField(default=False, db_default=False)
    existing = models.CharField(
        max_length=20, choices=ExistingPolicy, default=ExistingPolicy.MISSING_AND_FAILED
    )
    # The time from which runs may start; null for at once.
    scheduled_date = models.DateTimeField(null=True)
    delete_date = models.DateTimeField(null=True)
    relative_fileloc = models.CharField(max_length=1000, blank=True)
    # Source text as frozen at submission; runs use the version in BackfillAsset.
    origin_code = models.TextField(blank=True)
    # The bundle version that the code was frozen from.
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
    # The reason why the backfill does not advance, and the time of the next try; in the end the
    # backfill may be given up.
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
        """The chosen assets in words, as the person chose the assets: ``group flights``."""
        return chosen_text(self.chosen_by, self.asset.name)

    @property
    def is_of_one(self) -> bool:
        """Whether one asset was chosen by its name."""
        return self.title == self.asset.name

    @property
    def paused(self) -> bool:
        """Whether a person has paused the backfill. A cancellation pauses the group too, and does
        not count.
        """
        return self.group.paused and self.state != BackfillState.CANCELING

    @property
    def ended(self) -> bool:
        """Whether the backfill has ended, so that nothing more happens without a request."""
        return self.state in ENDED_STATES


class BackfillAsset(models.Model):
    """One asset of a backfill, at the version frozen at submission, with the counts of its
    partitions.

    Each transition of partitions changes the counts in the same transaction; the check makes counts
    of more partitions than there are rows impossible.
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
    # The partitions, as text of the selection grammar (in the order of the request where the order
    # is "listed"); the split into runs; the params of the function.
    selection = models.TextField(blank=True, default="")
    strategy = models.JSONField(default=a_run_for_each)
    params = models.JSONField(default=dict)
    # The partition definition when the request was accepted, as JSON, empty for an asset without
    # partitions: rows are numbered by it, and positions must not move. Null in rows from before
    # this column: the definition of the version.
    partition = models.JSONField(null=True)
    # The mapping of the edge by which the asset follows; null for overlap, and if it does not
    # follow.
    mapping = models.JSONField(null=True)
    # The number of partitions that the request names, and the number of rows written by now.
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
    """The intent to materialize one partition: a row from expansion on, a claim and a run only from
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
    # Position in the order of the asset's partitions: by time, then segment.
    position = models.PositiveIntegerField()
    # Ordered before the position: the number of the selection term where the order is "listed".
    rank = models.PositiveIntegerField(default=0, db_default=0)
    # Whether all upstream partitions in this backfill have ended. Only ready partitions are
    # admitted.
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
            # Counts skipped partitions by reason in no time, even of a million.
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
    """A request about a backfill that the bulk worker has yet to carry out.

    The insert waits for no lock. While such a row exists, no partition of the backfill is admitted.
    Rows of the same verb are carried out together.
    """

    class Verb(models.TextChoices):
        WITHDRAW = "withdraw", "Withdraw runs that have not begun"
        RETRY = "retry", "Retry"
        LOOK_AGAIN = "look_again", "Look again what waits for what"

    backfill = models.ForeignKey(Backfill, on_delete=models.CASCADE, related_name="pending")
    verb = models.CharField(max_length=10, choices=Verb)
    # For a retry: whether it takes the newest code, and whether it takes canceled partitions too.
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
    """A run that has ended, or a run to which a backfill has left partitions. Once the run has
    ended, the next admission marks partitions ready that follow.

    A row is written in the transaction that ends the run, since two runs that end at once would not
    see each other's end; and in the transaction that leaves partitions to a run of another request,
    since that run may be ending just then. A row is never unique: an insert waits for no other
    transaction.
    """

    backfill = models.ForeignKey(Backfill, on_delete=models.CASCADE, related_name="ended_runs")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")

    def __str__(self) -> str:
        return f"{self.backfill_id} run {self.run_id}"

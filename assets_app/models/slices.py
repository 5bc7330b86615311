"""The slices of assets: their present state, what made them, and how many there are."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from assets_app.models.catalogue import Asset, ProducerVersion
from assets_app.models.states import PartitionState
from assets_app.queries.slices import AssetPartitionQuerySet, CutQuerySet


class AssetPartition(models.Model):
    """One slice of one asset, from the first time that something happened to it. Others are
    missing.

    ``held_by`` is the run that makes it now: one at a time, since it is one column of one row.
    """

    # Its index is part of others, which begin with it.
    asset = models.ForeignKey(
        Asset, on_delete=models.CASCADE, related_name="slices", db_index=False
    )
    identity = models.CharField(max_length=16, db_collation="C")
    key = models.CharField(max_length=1000, db_collation="C")
    window_start = models.DateTimeField(null=True)
    window_end = models.DateTimeField(null=True)
    segment = models.CharField(max_length=1000, db_collation="C", blank=True, default="")
    # Local day of the window's start for windows finer than a day, else its local month.
    bucket = models.DateField(null=True)
    state = models.CharField(
        max_length=12, choices=PartitionState, default=PartitionState.MISSING, db_collation="C"
    )
    # Counts materializations; above 0 there is data, whatever became of later runs.
    version = models.PositiveIntegerField(default=0)
    # The version that it had when it was forgotten: the next one is counted on from there.
    forgotten_version = models.PositiveIntegerField(default=0, db_default=0)
    held_by = models.ForeignKey(
        "Run", null=True, on_delete=models.SET_NULL, related_name="held_slices", db_index=False
    )
    # It came due again while a run held it.
    due_again = models.BooleanField(default=False)
    # Not to be looked at again before: its window is not over yet.
    due_at = models.DateTimeField(null=True)
    # The run that held it when this was written: looked up once for each slice, that costs as much
    # as writing it.
    last_run = models.ForeignKey(
        "Run",
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    rows = models.BigIntegerField(null=True)
    bytes = models.BigIntegerField(null=True)
    materialized_at = models.DateTimeField(null=True)

    objects = AssetPartitionQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("asset", "identity", "key"), name="slice_once"),
            models.CheckConstraint(
                condition=models.Q(state__in=PartitionState.values), name="slice_state_known"
            ),
            models.CheckConstraint(
                condition=~models.Q(state=PartitionState.MATERIALIZED) | models.Q(version__gt=0),
                name="slice_materialized_has_version",
            ),
        )
        indexes = (
            models.Index(
                fields=("asset", "identity", "window_start", "segment"), name="slice_by_window"
            ),
            models.Index(
                fields=("held_by",), condition=models.Q(held_by__isnull=False), name="slice_held"
            ),
            models.Index(
                fields=("asset", "identity", "window_start"),
                condition=models.Q(held_by__isnull=False),
                name="slice_held_by_asset",
            ),
            # Without time, the past of an asset is in the order of its making.
            models.Index(
                fields=("asset", "identity", "materialized_at", "id"),
                condition=models.Q(window_start__isnull=True, version__gt=0),
                name="slice_by_making",
            ),
            models.Index(
                fields=("due_at",),
                condition=models.Q(due_again=True, held_by__isnull=True),
                name="slice_due_by_time",
            ),
        )

    def __str__(self) -> str:
        return f"{self.asset_id} {self.key}"


class WriteReport(models.Model):
    """Somebody has told of a write that something else did, to an asset that nothing here makes."""

    asset = models.ForeignKey(Asset, on_delete=models.CASCADE, related_name="write_reports")
    selection = models.TextField(blank=True)
    partition_count = models.PositiveIntegerField()
    metadata = models.JSONField(default=dict)
    told_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    # Who told of it is said as well when the account is gone.
    told_by_name = models.CharField(max_length=150)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"write {self.pk} of {self.asset_id}, told by {self.told_by_name}"


class Materialization(models.Model):
    """The record of one slice made by one run, or written by something else and told of.

    Appended when its data has been published, never changed.
    """

    slice = models.ForeignKey(
        AssetPartition, on_delete=models.CASCADE, related_name="materializations", db_index=False
    )
    version = models.PositiveIntegerField()
    # None of what something else has written: that has a report instead.
    run = models.ForeignKey(
        "Run", null=True, on_delete=models.PROTECT, related_name="materializations"
    )
    report = models.ForeignKey(
        WriteReport,
        null=True,
        on_delete=models.PROTECT,
        related_name="materializations",
        db_index=False,
    )
    # Its inputs say which upstream versions were there when it started. Attempt and version are
    # read from the run, which has a constraint, in the statement that writes them: to look them up
    # for each slice would cost as much as writing it.
    attempt = models.ForeignKey(
        "RunAttempt",
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    producer_version = models.ForeignKey(
        ProducerVersion,
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    rows = models.BigIntegerField(null=True)
    bytes = models.BigIntegerField(null=True)
    metadata = models.JSONField(default=dict)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(fields=("slice", "version"), name="materialization_version"),
            models.CheckConstraint(
                condition=Q(
                    run__isnull=False,
                    attempt__isnull=False,
                    producer_version__isnull=False,
                    report__isnull=True,
                )
                | Q(
                    run__isnull=True,
                    attempt__isnull=True,
                    producer_version__isnull=True,
                    report__isnull=False,
                ),
                name="materialization_by_run_or_report",
            ),
        )
        indexes = (
            models.Index(
                fields=("report",),
                condition=Q(report__isnull=False),
                name="materialization_by_report",
            ),
        )

    def __str__(self) -> str:
        return f"{self.slice_id} v{self.version}"


class PartitionCount(models.Model):
    """How many slices of an asset are in a state, per bucket of time and segment: pages never count
    slices.
    """

    asset = models.ForeignKey(Asset, on_delete=models.CASCADE, related_name="+", db_index=False)
    identity = models.CharField(max_length=16, db_collation="C")
    bucket = models.DateField(null=True)
    segment = models.CharField(max_length=1000, db_collation="C", blank=True, default="")
    state = models.CharField(max_length=12, choices=PartitionState, db_collation="C")
    count = models.BigIntegerField(default=0)

    objects = CutQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("asset", "identity", "bucket", "segment", "state"),
                nulls_distinct=False,
                name="partition_count_once",
            ),
        )

    def __str__(self) -> str:
        return f"{self.asset_id} {self.bucket} {self.segment} {self.state}: {self.count}"

"""Partitions of assets: present state, materializations, reported writes, and counts."""

from datetime import datetime
from typing import Self, TypeVar

from django.conf import settings
from django.db import models
from django.db.models import F, Min, Q, Value
from django.db.models.functions import Coalesce

from assets_app.models.catalogue import Asset, ProducerVersion
from assets_app.models.states import PartitionState
from partitions_app.rules import identity_of

Row = TypeVar("Row", bound=models.Model)


class IdentityQuerySet(models.QuerySet[Row]):
    """Rows that are kept of assets under the identity of a definition."""

    def under_current_definition(self) -> Self:
        """Select the rows under the present definition of each asset; rows under an earlier
        definition are kept, and not counted.
        """
        present = Coalesce(F("asset__partition_definition__identity"), Value(identity_of(None)))
        # Within the filter, the expression would leave out all assets without a definition: a
        # filter joins the table of a compared value by an inner join.
        return self.alias(present_identity=present).filter(identity=F("present_identity"))


class AssetPartitionQuerySet(IdentityQuerySet["AssetPartition"]):
    """Partitions of assets."""

    def materialized_of(self, asset: Asset) -> "AssetPartitionQuerySet":
        """Select the partitions of the asset's present definition that were ever materialized."""
        return self.filter(asset=asset, identity=asset.identity, version__gt=0)

    def failed_now(self) -> "AssetPartitionQuerySet":
        """Select the partitions that failed and that no run holds."""
        return self.filter(state=PartitionState.FAILED, held_by__isnull=True)

    def first_start(self) -> datetime | None:
        """Return the start of the first window; None where no partition has a window."""
        first: datetime | None = self.aggregate(first=Min("window_start"))["first"]
        return first


class AssetPartition(models.Model):
    """One partition of one asset, from its first event on. A partition without a row is missing.

    ``held_by`` is the run that materializes the partition now: one run at a time, since the column
    is one column of one row.
    """

    # Other indexes begin with the asset, and serve as its index.
    asset = models.ForeignKey(
        Asset, on_delete=models.CASCADE, related_name="partitions", db_index=False
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
    # The number of materializations; above 0 there is data, even if later runs failed.
    version = models.PositiveIntegerField(default=0)
    # The version when the partition was forgotten: the next version is counted on from there.
    forgotten_version = models.PositiveIntegerField(default=0, db_default=0)
    held_by = models.ForeignKey(
        "Run", null=True, on_delete=models.SET_NULL, related_name="held_partitions", db_index=False
    )
    # The partition came due again while a run held it.
    due_again = models.BooleanField(default=False)
    # Not to be evaluated again before this time: the window has not ended, for example.
    due_at = models.DateTimeField(null=True)
    # The run that held the partition when this column was written. A constraint would look up the
    # run for each row, which costs as much as the write.
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
            models.UniqueConstraint(fields=("asset", "identity", "key"), name="partition_once"),
            models.CheckConstraint(
                condition=models.Q(state__in=PartitionState.values), name="partition_state_known"
            ),
            models.CheckConstraint(
                condition=~models.Q(state=PartitionState.MATERIALIZED) | models.Q(version__gt=0),
                name="partition_materialized_has_version",
            ),
        )
        indexes = (
            models.Index(
                fields=("asset", "identity", "window_start", "segment"), name="partition_by_window"
            ),
            models.Index(
                fields=("held_by",),
                condition=models.Q(held_by__isnull=False),
                name="partition_held",
            ),
            models.Index(
                fields=("asset", "identity", "window_start"),
                condition=models.Q(held_by__isnull=False),
                name="partition_held_by_asset",
            ),
            # Few: partitions that failed, were canceled or were skipped, and that a run holds.
            models.Index(
                fields=("asset",),
                condition=models.Q(held_by__isnull=False)
                & ~models.Q(state__in=("missing", "materialized")),
                name="partition_retried",
            ),
            # Few: failed partitions that wait for a person. A run of a million partitions is asked
            # for the ones that no other run has materialized or holds.
            models.Index(
                fields=("last_run", "identity"),
                condition=models.Q(state="failed", held_by__isnull=True),
                name="partition_failed_by_run",
            ),
            # Without time, the past of an asset is in the order of materialization.
            models.Index(
                fields=("asset", "identity", "materialized_at", "id"),
                condition=models.Q(window_start__isnull=True, version__gt=0),
                name="partition_by_making",
            ),
            # With windows, `Fresh` asks for the newest materialization, whichever window it has.
            models.Index(
                fields=("asset", "identity", "materialized_at", "id"),
                condition=models.Q(window_start__isnull=False, version__gt=0),
                name="partition_with_window_newest",
            ),
            models.Index(
                fields=("due_at",),
                condition=models.Q(due_again=True, held_by__isnull=True),
                name="partition_due_by_time",
            ),
        )

    def __str__(self) -> str:
        return f"{self.asset_id} {self.key}"


class WriteReport(models.Model):
    """A report of a write by another program, to an asset without a producer."""

    asset = models.ForeignKey(Asset, on_delete=models.CASCADE, related_name="write_reports")
    selection = models.TextField(blank=True)
    partition_count = models.PositiveIntegerField()
    metadata = models.JSONField(default=dict)
    reported_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    # The name of the reporter, which is shown even when the account is gone.
    reported_by_name = models.CharField(max_length=150)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"write {self.pk} of {self.asset_id}, reported by {self.reported_by_name}"


class Materialization(models.Model):
    """The record of one partition materialized by one run, or written by another program and
    reported.

    The record is appended when the data has been published, and never changed.
    """

    partition = models.ForeignKey(
        AssetPartition, on_delete=models.CASCADE, related_name="materializations", db_index=False
    )
    version = models.PositiveIntegerField()
    # Null for data of another program, which has a report instead.
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
    # The inputs of the attempt say which upstream versions existed when the attempt started.
    # Attempt and version are read from the run, which has a constraint, in the statement that
    # writes the row: a look-up for each row would cost as much as the write.
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
    # The whole partition after a run that appends, written in the transaction that appends the
    # record; `rows` and `bytes` are of the appended data.
    total_files = models.BigIntegerField(null=True)
    total_rows = models.BigIntegerField(null=True)
    total_bytes = models.BigIntegerField(null=True)
    metadata = models.JSONField(default=dict)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                fields=("partition", "version"), name="materialization_version"
            ),
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
        return f"{self.partition_id} v{self.version}"


class PartitionCount(models.Model):
    """The number of partitions of an asset in a state, per bucket of time and segment: pages never
    count rows of partitions.
    """

    asset = models.ForeignKey(Asset, on_delete=models.CASCADE, related_name="+", db_index=False)
    identity = models.CharField(max_length=16, db_collation="C")
    bucket = models.DateField(null=True)
    segment = models.CharField(max_length=1000, db_collation="C", blank=True, default="")
    state = models.CharField(max_length=12, choices=PartitionState, db_collation="C")
    count = models.BigIntegerField(default=0)

    objects = IdentityQuerySet.as_manager()

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

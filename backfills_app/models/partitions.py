"""Partitions of backfills."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from assets_app.models import (
    AssetPartition,
    Run,
    SkipReason,
)
from backfills_app.models.backfills import BackfillAsset


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
    partition = models.ForeignKey(
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
            # Finds the first failed partition of a million.
            models.Index(
                fields=("backfill_asset", "position"),
                condition=Q(state="failed"),
                name="backfill_partition_failed",
            ),
            # Lists the partitions of one state. An expression, so that no other statement is
            # planned by this index: of rows just written the planner has no statistics, and takes
            # a state to be rare that a hundred thousand partitions have.
            models.Index(
                "backfill_asset", Lower("state"), "position", name="backfill_partition_by_state"
            ),
            # Counts and lists skipped partitions by reason in no time, even of a million.
            models.Index(
                fields=("backfill_asset", "reason", "position"),
                condition=Q(state="skipped"),
                name="backfill_partition_by_reason",
            ),
            models.Index(
                fields=("run",), condition=Q(run__isnull=False), name="backfill_partition_run"
            ),
        )

    def __str__(self) -> str:
        return f"{self.backfill_asset_id} {self.key}"

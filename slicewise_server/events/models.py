"""Events, in the order in which the feed gives them out."""

from collections.abc import Iterable

from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Now


class EventKind(models.TextChoices):
    """Changes that a person may have to act on, and the ends of such states."""

    RUN_FAILED = "run_failed", "Run failed"
    RUN_RECOVERED = "run_recovered", "Run succeeded after a failure"
    VALIDATION_FAILED = "validation_failed", "Validation failed"
    VALIDATION_WARNED = "validation_warned", "Validation warned"
    PARTITION_OVERDUE = "partition_overdue", "Partition overdue"
    BACKFILL_SUCCEEDED = "backfill_succeeded", "Backfill succeeded"
    BACKFILL_FAILED = "backfill_failed", "Backfill failed, in part or whole"
    BACKFILL_CANCELED = "backfill_canceled", "Backfill canceled"
    WORKER_LOST = "worker_lost", "Worker offline"
    BUNDLE_BROKEN = "bundle_broken", "Bundle has import errors"
    BUNDLE_MENDED = "bundle_mended", "Bundle loads again"
    SCHEDULE_TRUNCATED = "schedule_truncated", "Due partitions not queued"


def unknown_kind(kinds: Iterable[str]) -> str:
    """Return a sentence about the first text that is no kind; empty if all are kinds."""
    unknown = sorted(set(kinds) - set(EventKind.values))
    if not unknown:
        return ""
    return f"{unknown[0]!r} is no kind; there are {', '.join(EventKind.values)}."


class Event(models.Model):
    """One event. Names and ids are copied, so that an event outlives its subject.

    ``position`` is the place in the feed. Only one transaction at a time gives out positions, and
    only to events of committed transactions: a reader that has read up to a position has missed no
    event before it, although ids commit out of order.
    """

    position = models.BigIntegerField(null=True, unique=True)
    kind = models.CharField(max_length=30, choices=EventKind)
    at = models.DateTimeField(db_default=Now())
    asset = models.CharField(max_length=250, blank=True, default="", db_default="")
    run_id = models.BigIntegerField(null=True)
    backfill_id = models.BigIntegerField(null=True)
    bundle = models.CharField(max_length=200, blank=True, default="", db_default="")
    worker = models.CharField(max_length=200, blank=True, default="", db_default="")
    # The error in the words of the code or of Slicewise; may hold secrets, so is masked when read.
    error = models.TextField(blank=True, default="", db_default="")
    # Further facts of the kind, with names that the guide lists.
    detail = models.JSONField(default=dict)

    class Meta:
        ordering = ("position",)
        indexes = (
            models.Index(
                fields=("id",),
                condition=models.Q(position__isnull=True),
                name="event_without_position",
            ),
            models.Index(fields=("at",), name="event_by_time"),
            models.Index(fields=("asset", "position"), name="event_by_asset"),
            models.Index(fields=("kind", "position"), name="event_by_kind"),
            models.Index(
                fields=("backfill_id", "id"),
                condition=models.Q(kind="run_failed"),
                name="event_by_backfill",
            ),
            models.Index(
                fields=("worker", "-at"),
                condition=models.Q(kind="worker_lost"),
                name="event_by_lost_worker",
            ),
            GinIndex(
                KeyTransform("assets", "detail"),
                condition=models.Q(detail__has_key="assets"),
                name="event_by_listed_asset",
            ),
        )

    def __str__(self) -> str:
        subject = self.asset or self.bundle or self.worker or f"backfill {self.backfill_id}"
        return f"{self.kind}: {subject}"


class ReportedFailure(models.Model):
    """A failed run that an event reports, and the number of its partitions that no run has
    materialized since. The failure is over when the number is 0.
    """

    run_id = models.BigIntegerField(unique=True)
    # Of the failed run: rules that leave out single runs of backfills leave out the recovery too.
    backfill_id = models.BigIntegerField(null=True)
    open_partitions = models.IntegerField()
    at = models.DateTimeField()

    class Meta:
        indexes = (models.Index(fields=("at",), name="reported_failure_by_time"),)

    def __str__(self) -> str:
        return f"failure of run {self.run_id}"


class FailedPartition(models.Model):
    """A partition of a failed run that an event reports, until the partition is materialized."""

    partition_id = models.BigIntegerField()
    run_id = models.BigIntegerField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("partition_id", "run_id"), name="failed_partition_once"
            ),
        )
        indexes = (models.Index(fields=("run_id",), name="failed_partition_by_run"),)

    def __str__(self) -> str:
        return f"partition {self.partition_id} of run {self.run_id}"

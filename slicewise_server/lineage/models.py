"""Lineage events to send, the receiver of these events, and lineage that other tools report."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from assets_app.models import Asset, RunAttempt, WriteReport


class LineageEventKind(models.TextChoices):
    """The types of events of a run, by the names of OpenLineage."""

    START = "START", "Start"
    COMPLETE = "COMPLETE", "Complete"
    FAIL = "FAIL", "Fail"
    ABORT = "ABORT", "Abort"


class LineageEvent(models.Model):
    """The start or the end of an attempt, to be sent. The body is built when the event is sent.

    Each attempt has one start and, once the attempt has ended, one end.
    """

    # The attempt is read in the statement that writes the row.
    attempt = models.ForeignKey(
        RunAttempt, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    is_end = models.BooleanField()
    kind = models.CharField(max_length=8, choices=LineageEventKind)
    at = models.DateTimeField()
    # Of a start: whether the end is still to be written.
    is_open = models.BooleanField()
    sent_at = models.DateTimeField(null=True)
    # Not sent before this time, after the receiver has refused the event.
    not_before = models.DateTimeField(null=True)
    refusals = models.PositiveIntegerField(default=0, db_default=0)
    error = models.TextField(default="", db_default="")

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(fields=("attempt", "is_end"), name="lineage_start_end_once"),
        )
        indexes = (
            models.Index(fields=("id",), condition=Q(sent_at__isnull=True), name="lineage_to_send"),
            models.Index(
                fields=("id",),
                condition=Q(sent_at__isnull=True, not_before__isnull=True),
                name="lineage_never_sent",
            ),
            models.Index(
                fields=("not_before",),
                condition=Q(sent_at__isnull=True, not_before__isnull=False),
                name="lineage_refused",
            ),
            models.Index(fields=("attempt",), condition=Q(is_open=True), name="lineage_open"),
            models.Index(
                fields=("sent_at",), condition=Q(sent_at__isnull=False), name="lineage_sent"
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} of attempt {self.attempt_id}"


class LineageReceiver(models.Model):
    """The one row with the state of the receiver of events, and with the claim of a sender."""

    ROW_ID = 1

    failures = models.PositiveIntegerField(default=0, db_default=0)
    error = models.TextField(default="", db_default="")
    # After a failure no event is sent before this time.
    retry_at = models.DateTimeField(null=True)
    # Until when one worker alone sends events.
    claim = models.UUIDField(null=True)
    claimed_until = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return "receiver of lineage events"


class ReceivedWrite(models.Model):
    """A declared asset among the outputs of another tool's run, counted as a write or not.

    A run writes a selection of an asset once: tools send the end of a run more than once.
    """

    asset = models.ForeignKey(
        Asset, on_delete=models.CASCADE, related_name="received_writes", db_index=False
    )
    run_id = models.UUIDField()
    selection = models.TextField()
    # SHA-256 of the selection, which may be longer than an index takes.
    selection_digest = models.CharField(max_length=64)
    # The write on record; null where nothing was written, and `problem` says why.
    report = models.OneToOneField(
        WriteReport, null=True, on_delete=models.SET_NULL, related_name="received_write"
    )
    problem = models.TextField(default="", db_default="")
    job_namespace = models.TextField()
    job_name = models.TextField()
    producer = models.TextField()
    reported_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    received_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                fields=("asset", "run_id", "selection_digest"), name="received_write_once"
            ),
        )
        indexes = (models.Index(fields=("received_at",), name="received_write_by_time"),)

    def __str__(self) -> str:
        return f"{self.asset_id} {self.selection} by {self.run_id}"


class LineageEdge(models.Model):
    """A pair of datasets of a job of another tool: the job reads one and writes the other.

    At least one of the two is an asset. The names are the names in the event.
    """

    # SHA-256 of the six texts, which are longer than an index takes.
    digest = models.CharField(max_length=64, unique=True)
    upstream = models.ForeignKey(
        Asset, null=True, on_delete=models.CASCADE, related_name="edges_to_datasets"
    )
    upstream_namespace = models.TextField()
    upstream_name = models.TextField()
    downstream = models.ForeignKey(
        Asset, null=True, on_delete=models.CASCADE, related_name="edges_from_datasets"
    )
    downstream_namespace = models.TextField()
    downstream_name = models.TextField()
    job_namespace = models.TextField()
    job_name = models.TextField()
    # Null where an event described the job without a run.
    last_run_id = models.UUIDField(null=True)
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()

    class Meta:
        ordering = ("-last_seen_at", "-id")
        indexes = (models.Index(fields=("last_seen_at",), name="lineage_edge_by_time"),)
        constraints = (
            models.CheckConstraint(
                condition=Q(upstream__isnull=False) | Q(downstream__isnull=False),
                name="lineage_edge_of_asset",
            ),
        )

    def __str__(self) -> str:
        return f"{self.upstream_name} -> {self.downstream_name}"


class TruncatedJob(models.Model):
    """A job of another tool with more edges than a request adds, by the newest event of the job."""

    # SHA-256 of the two names, which are longer than an index takes.
    digest = models.CharField(max_length=64, unique=True)
    job_namespace = models.TextField()
    job_name = models.TextField()
    # Null where an event described the job without a run.
    run_id = models.UUIDField(null=True)
    number = models.PositiveIntegerField()
    at = models.DateTimeField()

    class Meta:
        ordering = ("-at", "-id")
        indexes = (models.Index(fields=("at",), name="truncated_job_by_time"),)

    def __str__(self) -> str:
        return f"{self.number} edges of {self.job_name}"

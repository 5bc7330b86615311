"""Models of attempts at runs: leases, outlets, inputs and logs."""

from django.db import models
from django.db.models import Q

from assets_app.models.catalogue import Asset, ProducerVersion
from assets_app.models.gateways import Gateway
from assets_app.models.partitions import AssetPartition
from assets_app.models.runs import Run
from assets_app.models.states import (
    AttemptOutcome,
    StepKind,
)


class RunAttempt(models.Model):
    """One try at a run, by one worker, under a lease. In the database, the token fences off a
    worker that has lost the attempt; where the data is kept, the fencing number does.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    gateway = models.ForeignKey(
        Gateway, null=True, on_delete=models.SET_NULL, related_name="+", verbose_name="worker"
    )
    token = models.UUIDField(unique=True)
    # Grows by one with each worker that takes the attempt over.
    fence = models.PositiveIntegerField(default=1, db_default=1)
    engine = models.CharField(max_length=10, default="connect")
    # Chosen by the worker and stored before the first operation, so that any process can interrupt
    # the session.
    spark_session_id = models.UUIDField(null=True)
    application_id = models.CharField(max_length=200, blank=True)
    application_ui = models.CharField(max_length=500, blank=True)
    # Whether the work of the attempt on Spark has not been seen to end: the worker was lost, or
    # Spark is silent.
    may_go_on = models.BooleanField(default=False, db_default=False)
    # Of an ended attempt: when a worker is to look, or to look again, for work and data that the
    # attempt has left behind. Null where nothing can be left.
    clear_at = models.DateTimeField(null=True)
    # Whether no other run was on the worker meanwhile: then no other run is to blame for the loss
    # of the worker.
    was_alone = models.BooleanField(default=False, db_default=False)
    # The asset without partitions that the attempt materializes, as long as the inputs that the
    # attempt has read are kept for the asset.
    keeps_inputs_of = models.ForeignKey(
        Asset, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    outcome = models.CharField(max_length=10, choices=AttemptOutcome, blank=True)
    error = models.TextField(blank=True)
    traceback = models.TextField(blank=True)
    # Of the runner's process and the child processes that it has waited for: seconds of processor
    # time, and the largest memory of one process in bytes. Null where the worker did not see the
    # process end.
    cpu_seconds = models.FloatField(null=True)
    peak_memory = models.BigIntegerField(null=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    # Part of the intent to publish, like the locations of the outlets: the keys that the attempt
    # has found, as [{"set": name, "key": the key's JSON}].
    found = models.JSONField(default=list)
    # Part of the intent as well, where only some of the partitions are published: the failure of
    # the attempt, {"error", "traceback"}. Null where all are published.
    partly = models.JSONField(null=True)

    class Meta:
        ordering = ("number",)
        constraints = (
            models.UniqueConstraint(fields=("run", "number"), name="attempt_number"),
            models.UniqueConstraint(
                fields=("run",), condition=Q(ended_at__isnull=True), name="attempt_one_open"
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True, outcome="")
                | (Q(ended_at__isnull=False) & ~Q(outcome="")),
                name="attempt_outcome_when_ended",
            ),
            models.CheckConstraint(
                condition=Q(clear_at__isnull=True) | Q(ended_at__isnull=False),
                name="attempt_cleared_when_ended",
            ),
        )
        indexes = (
            models.Index(
                fields=("clear_at",), condition=Q(clear_at__isnull=False), name="attempt_to_clear"
            ),
            models.Index(fields=("run",), condition=Q(may_go_on=True), name="attempt_may_go_on"),
            models.Index(
                fields=("keeps_inputs_of",),
                condition=Q(keeps_inputs_of__isnull=False),
                name="attempt_keeps_inputs",
            ),
        )

    def __str__(self) -> str:
        return f"run {self.run_id} attempt {self.number}"

    @property
    def tag(self) -> str:
        """The name of the Spark application of the attempt, and the tag of its Spark operations."""
        return f"slicewise-run-{self.run_id}-{self.number}"

    @property
    def name_on_disk(self) -> str:
        """The mark on the data of the attempt, which no other attempt of any database has.

        Run ids and numbers come again with a new or a restored database, and with a second
        installation on the same URI. The session id is chosen at random and never changes.
        """
        session = self.spark_session_id
        return f"{self.number}-{session.hex[:12]}" if session else str(self.number)

    def disk_names(self, version: ProducerVersion) -> dict[str, str]:
        """Return the name on disk of each outlet, by asset: two outlets may stage in one folder."""
        base_name = self.name_on_disk
        return {name: f"{base_name}.{position}" if position else base_name
                for position, name in enumerate(version.outlets)}  # fmt: skip


class Lease(models.Model):
    """The time until which an attempt belongs to its worker. An ended attempt has no lease.

    Workers renew leases every second. Only attempts under way have a row, and the primary key is
    the only index, so that a renewal changes no index and no attempt.
    """

    attempt = models.OneToOneField(
        RunAttempt, primary_key=True, on_delete=models.CASCADE, related_name="lease"
    )
    until = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.attempt_id} until {self.until}"


class AttemptOutlet(models.Model):
    """The target and the staging location of one outlet of an attempt: written with the intent to
    publish.
    """

    attempt = models.ForeignKey(
        RunAttempt, on_delete=models.CASCADE, related_name="outlets", db_index=False
    )
    asset = models.ForeignKey(Asset, on_delete=models.CASCADE, related_name="+")
    name_on_disk = models.CharField(max_length=100)
    root = models.TextField()
    staging = models.TextField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("attempt", "asset"), name="attempt_outlet_once"),
        )

    def __str__(self) -> str:
        return f"{self.attempt_id} {self.asset_id}"


class AttemptInput(models.Model):
    """An upstream partition that was materialized when an attempt started, and the version then."""

    # Attempt and partition are read in the statement that writes the row: a check of each for a
    # million rows would take longer than the write.
    attempt = models.ForeignKey(
        RunAttempt,
        on_delete=models.CASCADE,
        related_name="inputs",
        db_index=False,
        db_constraint=False,
    )
    partition = models.ForeignKey(
        AssetPartition, on_delete=models.CASCADE, related_name="read_by", db_constraint=False
    )
    version = models.PositiveIntegerField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("attempt", "partition"), name="attempt_input_once"),
        )

    def __str__(self) -> str:
        return f"{self.attempt_id} read {self.partition_id} v{self.version}"


class RunLog(models.Model):
    """A chunk of the output of an attempt; ``sequence`` gives the order."""

    attempt = models.ForeignKey(
        RunAttempt, on_delete=models.CASCADE, related_name="logs", db_index=False
    )
    sequence = models.PositiveIntegerField()
    # The step that ran meanwhile; empty for other output, and for runs without such steps.
    step = models.CharField(max_length=10, choices=StepKind, blank=True, default="", db_default="")
    text = models.TextField()
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("sequence",)
        constraints = (
            models.UniqueConstraint(fields=("attempt", "sequence"), name="log_sequence"),
        )

    def __str__(self) -> str:
        return f"attempt {self.attempt_id} log {self.sequence}"

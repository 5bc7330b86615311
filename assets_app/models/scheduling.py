"""Schedules of producers, ticks of schedules, the outbox, and truncations of schedules."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import models
from django.db.models.functions import Now

from assets_app.models.catalogue import Asset, Producer
from assets_app.models.partitions import WriteReport
from assets_app.models.runs import Run, RunGroup
from assets_app.models.states import TickReason
from slicewise.declaring import time_terms


class Schedule(models.Model):
    """The schedule of one producer, from its version in force, and how far ticks are handled."""

    producer = models.OneToOneField(Producer, on_delete=models.CASCADE, related_name="schedule")
    # {"schedule", "timezone", "start", "end"} as the loader reported them; null without a schedule.
    # With a term `After` also {"windows"}: the definition of the windows that the term counts from.
    rule = models.JSONField(null=True)
    # Whether the schedule is one time and nothing else.
    by_time = models.BooleanField()
    # The group of all scheduled runs of the producer: dispatch is fair among groups.
    group = models.OneToOneField(RunGroup, on_delete=models.PROTECT, related_name="schedule")
    # The next tick of a time in the schedule; null while no tick is to come, and during a pause.
    next_at = models.DateTimeField(null=True)
    # Ticks up to this time are handled. Partitions that ended before are not due by themselves:
    # there is no catch-up.
    handled_until = models.DateTimeField()
    # Of a schedule that joins times and assets, whose ticks move `handled_until`: since when the
    # schedule goes on. An earlier tick meets none of its times.
    began_at = models.DateTimeField(db_default=Now())
    # The last pause, which may still go on, and `handled_until` when the pause began.
    paused_at = models.DateTimeField(null=True)
    unpaused_at = models.DateTimeField(null=True)
    handled_before_pause = models.DateTimeField(null=True)
    # When the oldest write was recorded that was not evaluated when the pause began; null without
    # such a write. The pause discards these writes.
    unevaluated_since = models.DateTimeField(null=True)
    # {"ids", "is_cut"}: partitions that were marked when the pause began, to be examined after a
    # run, at the end of a window or after a failure. The pause discards the marks; a mark that
    # outlives the pause is handled as usual, and the end of the pause leaves its partition out.
    partitions_to_examine = models.JSONField(default=dict, db_default={})
    # In a pause, since when windows that end are missed; null while the rule has no times. And the
    # spans of the last pause that have ended, as pairs of texts: see `queries/missed_spans.py`.
    misses_since = models.DateTimeField(null=True)
    missed_spans = models.JSONField(default=list, db_default=[])
    # The last error, how many failures in a row, since when, and the time of the next try.
    error = models.TextField(blank=True, default="", db_default="")
    failures = models.PositiveIntegerField(default=0, db_default=0)
    failing_since = models.DateTimeField(null=True)
    retry_at = models.DateTimeField(null=True)

    class Meta:
        indexes = (
            models.Index(
                fields=("next_at",),
                condition=models.Q(next_at__isnull=False),
                name="schedule_next_tick",
            ),
        )

    def __str__(self) -> str:
        return f"schedule of {self.producer_id}"

    @classmethod
    def of(cls, asset: Asset) -> "Schedule | None":
        """Return the schedule of the asset's function, perhaps one without a rule that an earlier
        version left; None if the function never had a schedule.
        """
        return None if asset.producer is None else getattr(asset.producer, "schedule", None)

    @property
    def expression(self) -> Mapping[str, Any]:
        """The expression over assets and times of a schedule by assets. Raises TypeError for a
        schedule without a rule.
        """
        if self.rule is None:
            raise TypeError("a schedule without a rule has no expression")
        expression: Mapping[str, Any] = self.rule["schedule"]
        return expression

    @property
    def joins_times(self) -> bool:
        """Whether the schedule is an expression with a time in it."""
        return self.rule is not None and not self.by_time and bool(time_terms(self.expression))

    @property
    def followed_since(self) -> datetime:
        """Since when a schedule by assets follows writes: ticks of joined times move
        ``handled_until``.
        """
        return self.began_at if self.joins_times else self.handled_until

    @property
    def is_in_pause(self) -> bool:
        """Whether a pause goes on."""
        return self.paused_at is not None and self.unpaused_at is None

    @property
    def ended_spans(self) -> list[tuple[datetime, datetime]]:
        """The spans of the last pause that have ended, in order of time.

        A process of an earlier version, which knows no spans, leaves those of the pause before.
        """
        spans = [
            (datetime.fromisoformat(a), datetime.fromisoformat(b)) for a, b in self.missed_spans
        ]
        since = self.handled_before_pause
        return [span for span in spans if since is None or span[1] > since]

    def has_tick_to_handle(self, now: datetime) -> bool:
        """Return whether a tick has come and is not handled: the tick is about to be handled, or
        has failed and waits for the next try.
        """
        return self.next_at is not None and (self.next_at <= now or self.next_at == self.retry_at)


class Outbox(models.Model):
    """A recorded run or a reported write whose downstream partitions are still to be evaluated.

    The row is written in the transaction that records the run or report, and evaluated in a later
    one: two transactions at once would not see each other. If the evaluation fails for some
    schedules, a row for each of these schedules is written.
    """

    run = models.ForeignKey(Run, null=True, on_delete=models.CASCADE, related_name="+")
    report = models.ForeignKey(WriteReport, null=True, on_delete=models.CASCADE, related_name="+")
    # The only schedule that the row is still to be evaluated for; null for all downstream
    # schedules.
    schedule = models.ForeignKey(
        Schedule, null=True, on_delete=models.CASCADE, related_name="unevaluated_writes"
    )
    # Not evaluated before this time, after a failure.
    not_before = models.DateTimeField(null=True)
    # How often the evaluation failed with no schedule at fault.
    failures = models.PositiveIntegerField(default=0, db_default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "outbox entries"
        ordering = ("id",)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(run__isnull=False, report__isnull=True)
                | models.Q(run__isnull=True, report__isnull=False),
                name="outbox_run_or_report",
            ),
            models.UniqueConstraint(
                fields=("run", "report", "schedule"), nulls_distinct=False, name="outbox_once"
            ),
        )

    def __str__(self) -> str:
        return f"run {self.run_id}" if self.run_id else f"report {self.report_id}"


class ScheduleTick(models.Model):
    """One tick of a schedule with a time: the number of partitions queued, or the reason for none.

    Ticks in a row that queue nothing for the same reason are one row.
    """

    schedule = models.ForeignKey(
        Schedule, on_delete=models.CASCADE, related_name="ticks", db_index=False
    )
    at = models.DateTimeField()
    last_at = models.DateTimeField()
    # The number of ticks in the row: more than one also where the server was down meanwhile.
    count = models.PositiveIntegerField(default=1)
    reason = models.CharField(max_length=20, choices=TickReason, blank=True)
    queued = models.PositiveIntegerField(default=0)
    existing = models.PositiveIntegerField(default=0)
    in_flight = models.PositiveIntegerField(default=0)
    # The number of partitions skipped, since the schedule asks for the latest partition alone.
    superseded = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ("-at",)
        indexes = (models.Index(fields=("schedule", "-at"), name="tick_by_schedule"),)

    def __str__(self) -> str:
        return f"{self.schedule_id} at {self.at}"


class ScheduleTruncation(models.Model):
    """One upstream write or one tick made more partitions due than may be queued: the newest were
    queued, and the oldest were not. No schedule queues the oldest later; an event announces them.
    """

    asset = models.ForeignKey(Asset, on_delete=models.CASCADE, related_name="truncations")
    # The last time, where the same partitions were not queued several times.
    at = models.DateTimeField()
    # The number of partitions that were not queued.
    count = models.PositiveBigIntegerField()
    # The number of partitions queued instead: the newest.
    queued = models.PositiveIntegerField()
    first = models.CharField(max_length=1000, db_collation="C")
    last = models.CharField(max_length=1000, db_collation="C")
    # The first and the last window, for a backfill; empty where the asset has no time.
    start = models.CharField(max_length=100, blank=True)
    end = models.CharField(max_length=100, blank=True)

    class Meta:
        ordering = ("-at", "-id")
        constraints = (
            models.UniqueConstraint(
                fields=("asset", "first", "last", "count"), name="schedule_truncation_once"
            ),
        )
        indexes = (models.Index(fields=("at",), name="schedule_truncation_by_time"),)

    def __str__(self) -> str:
        return f"{self.count} of {self.asset_id}: {self.first}..{self.last}"

"""Lateness: inputs that were late when a partition was made, and partitions that are overdue."""

from django.db import models

from assets_app.models.catalogue import Asset
from assets_app.models.runs import Run


class LateReason(models.TextChoices):
    """Why an input was late."""

    MISSING = "missing", "Missing"
    OLD = "old", "Old"


class LateEffect(models.TextChoices):
    """The effect of a late input when data arrives."""

    SCHEDULE = "schedule", "As scheduled"
    STALE = "stale", "Partition becomes stale"
    REMAKE = "remake", "Partition is materialized again"


class LateInput(models.Model):
    """An upstream asset that was missing or old when a schedule queued a partition of a run.

    Written with the claim of the run, and never changed.
    """

    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="late_inputs", db_index=False
    )
    key = models.CharField(max_length=1000, db_collation="C")
    upstream = models.ForeignKey(Asset, on_delete=models.CASCADE, related_name="+")
    reason = models.CharField(max_length=10, choices=LateReason)
    effect = models.CharField(max_length=10, choices=LateEffect)
    # The number of missing partitions, and the keys of the first ones.
    missing = models.PositiveIntegerField(default=0)
    keys = models.JSONField(default=list)
    # When the newest of the needed partitions was materialized; null if none was.
    newest_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("run", "key", "upstream"), name="late_input_once"),
        )

    def __str__(self) -> str:
        return f"{self.upstream_id} {self.reason} for {self.key} of run {self.run_id}"


class FreshnessWatch(models.Model):
    """An asset whose partitions are to be there so long after their windows."""

    asset = models.OneToOneField(Asset, on_delete=models.CASCADE, related_name="freshness_watch")
    # The identity of the definition whose windows are watched.
    identity = models.CharField(max_length=16, db_collation="C")
    # {"within", "warn"} in seconds, as the loader reported them.
    freshness = models.JSONField()
    # Windows that ended up to this time have been looked at, or ended before the watch began.
    watched_until = models.DateTimeField()
    # When the next window is late; null where no window is left.
    next_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "freshness watches"
        indexes = (
            models.Index(
                fields=("next_at",),
                condition=models.Q(next_at__isnull=False),
                name="freshness_watch_next",
            ),
        )

    def __str__(self) -> str:
        return f"freshness of {self.asset_id}"


class LatePartition(models.Model):
    """A partition that was missing when it was to be there, or at the earlier mark of a warning.

    A partition that has come meanwhile is not late any more: readers look, and a beat deletes the
    row.
    """

    asset = models.ForeignKey(
        Asset, on_delete=models.CASCADE, related_name="late_partitions", db_index=False
    )
    identity = models.CharField(max_length=16, db_collation="C")
    key = models.CharField(max_length=1000, db_collation="C")
    window_start = models.DateTimeField()
    window_end = models.DateTimeField()
    # From when on the partition is late, and from when on overdue.
    late_at = models.DateTimeField()
    overdue_at = models.DateTimeField()
    # When the event was written that the partition is overdue.
    announced_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("asset", "identity", "key"), name="late_once"),
        )
        indexes = (
            models.Index(
                fields=("overdue_at",),
                condition=models.Q(announced_at__isnull=True),
                name="late_not_announced",
            ),
        )

    def __str__(self) -> str:
        return f"{self.asset_id} {self.key}: late since {self.late_at}"

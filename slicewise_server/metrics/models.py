"""Kept numbers: runs by state, and times by bucket. All processes and hosts share the numbers."""

from django.db import models

from slicewise_server.metrics.timed_metrics import TimedMetric


class RunChange(models.Model):
    """The runs of one asset and queue that entered or left a state in one statement.

    A trigger inserts these rows in the transaction of the change; a task adds the rows to the
    counts, and deletes the rows. A row is never updated, so no transaction waits.
    """

    asset_id = models.BigIntegerField()
    queue = models.CharField(max_length=10)
    state = models.CharField(max_length=10)
    # Negative for runs that left the state.
    change = models.IntegerField()
    # The time that the runs took up to this state: the bucket, and the sum in seconds. Null for a
    # state whose time is not measured.
    bucket = models.SmallIntegerField(null=True)
    seconds = models.FloatField(null=True)

    def __str__(self) -> str:
        return f"{self.change} {self.state} of {self.asset_id}"


class RunCount(models.Model):
    """The number of runs of one asset and queue in one state."""

    asset_id = models.BigIntegerField()
    queue = models.CharField(max_length=10)
    state = models.CharField(max_length=10)
    runs = models.BigIntegerField()
    # How often a run has entered the state: this number only grows.
    entered = models.BigIntegerField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("asset_id", "queue", "state"), name="run_count_once"),
        )

    def __str__(self) -> str:
        return f"{self.runs} {self.state} of {self.asset_id}"


class TimeCount(models.Model):
    """The number of times of one metric that fall into one bucket, and the sum of these times."""

    metric = models.CharField(max_length=20, choices=TimedMetric)
    # The values of the labels, joined by `|`, which no value contains.
    labels = models.CharField(max_length=100)
    bucket = models.SmallIntegerField()
    observations = models.BigIntegerField()
    seconds = models.FloatField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("metric", "labels", "bucket"), name="time_count_once"),
        )

    def __str__(self) -> str:
        return f"{self.metric} {self.labels} {self.bucket}: {self.observations}"

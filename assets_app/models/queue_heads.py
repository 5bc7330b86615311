"""The heads of the queues, which dispatch reads instead of all queued runs."""

from django.db import models
from django.db.models import Q

from assets_app.models.catalogue import Producer, ProducerVersion
from assets_app.models.runs import Run, RunGroup
from assets_app.models.states import Queue


class QueueHead(models.Model):
    """The first ready run of one group and producer version, with all that its position depends on.

    A run is ready if it is queued and has no `not_before`. Only dispatch writes these rows
    (`assets_app.execution.queue.queue_heads`).
    """

    queue = models.CharField(max_length=10, choices=Queue)
    # Constraints would cost a look at four tables for each row; no row outlives its run for longer
    # than until the next dispatch.
    group = models.ForeignKey(
        RunGroup, on_delete=models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    producer_version = models.ForeignKey(
        ProducerVersion,
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    run = models.ForeignKey(
        Run, on_delete=models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    producer = models.ForeignKey(
        Producer, on_delete=models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    needs_spark = models.BooleanField()
    # Values of the version in force of the producer.
    priority = models.IntegerField()
    max_active_runs = models.IntegerField(null=True)
    # Values of the group.
    group_priority = models.IntegerField()
    group_max_active_runs = models.IntegerField(null=True)
    paused = models.BooleanField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("group", "producer_version", "queue"), name="queue_head_once"
            ),
        )
        indexes = (models.Index(fields=("producer",), name="queue_head_by_producer"),)

    def __str__(self) -> str:
        return f"{self.queue}: run {self.run_id}"


class QueueChange(models.Model):
    """A change that a head may depend on: of ready runs of one group and producer version, of a
    group, or of a producer.

    Triggers insert these rows in the transaction that makes the change; dispatch deletes the rows
    in the transaction that brings the heads up to date. A row is never updated, so no transaction
    waits.
    """

    # Set together with a group and a version, whose ready runs have changed.
    queue = models.CharField(max_length=10, choices=Queue, blank=True, default="", db_default="")
    group_id = models.BigIntegerField(null=True)
    producer_version_id = models.BigIntegerField(null=True)
    # The first run that has become ready; null where runs have only left.
    run_id = models.BigIntegerField(null=True)
    producer_id = models.BigIntegerField(null=True)

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(queue="", group_id__isnull=False)
                | Q(queue="", producer_id__isnull=False)
                | Q(group_id__isnull=False, producer_version_id__isnull=False),
                name="queue_change_of_something",
            ),
        )

    def __str__(self) -> str:
        return f"{self.queue}: {self.group_id} {self.producer_version_id} {self.producer_id}"

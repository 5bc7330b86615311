"""Workers that execute runs."""

from datetime import datetime, timedelta

from django.db import models

from assets_app.models.states import Queue

# A worker writes a heartbeat every second. A worker without one for so long gets no more runs.
GATEWAY_SILENCE = timedelta(seconds=10)


class GatewayState(models.TextChoices):
    """The state of a worker: derived from the row and the time, never stored."""

    WORKING = "working", "Working"
    DRAINING = "draining", "Draining"
    STOPPED = "stopped", "Stopped"
    LOST = "lost", "Lost"


class Gateway(models.Model):
    """One worker process on a gateway host: its queue, its number of slots, and its last
    heartbeat.
    """

    name = models.CharField(max_length=200, unique=True)
    host = models.CharField(max_length=200)
    process_id = models.PositiveIntegerField()
    queue = models.CharField(max_length=10, choices=Queue)
    slots = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    last_seen = models.DateTimeField()
    # Set by a worker that shuts down in good order: the worker takes no more runs.
    draining = models.BooleanField(default=False)
    # Since when no server answers at the address of the Spark Connect server of the worker; null
    # where one does.
    spark_away_since = models.DateTimeField(null=True)
    # Slots that stay free while a run that is to have fewer neighbours is at work, or waits.
    closed_slots = models.PositiveIntegerField(default=0, db_default=0)

    class Meta:
        ordering = ("name",)
        # The admin site uses the word of the pages.
        verbose_name = "worker"

    def __str__(self) -> str:
        return self.name

    def state_at(self, now: datetime) -> GatewayState:
        """Return the state: a silent gateway has stopped if it had signed off, and else is lost."""
        if self.last_seen > now - GATEWAY_SILENCE:
            return GatewayState.DRAINING if self.draining else GatewayState.WORKING
        return GatewayState.STOPPED if self.draining else GatewayState.LOST

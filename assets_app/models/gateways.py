"""Where runs are executed."""

from datetime import datetime, timedelta

from django.db import models

from assets_app.models.states import Queue

# A worker tells of itself every second. One that has not for so long gets nothing more.
GATEWAY_SILENCE = timedelta(seconds=10)


class GatewayState(models.TextChoices):
    """How a worker stands: derived from its row and the time, never stored."""

    WORKING = "working", "Working"
    DRAINING = "draining", "Draining"
    STOPPED = "stopped", "Stopped"
    LOST = "lost", "Lost"


class Gateway(models.Model):
    """One worker process on a gateway host: which queue it serves, with how many slots, and when it
    was last heard.
    """

    name = models.CharField(max_length=200, unique=True)
    host = models.CharField(max_length=200)
    process_id = models.PositiveIntegerField()
    queue = models.CharField(max_length=10, choices=Queue)
    slots = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    last_seen = models.DateTimeField()
    # Set by a worker that goes down in good order: it takes nothing more.
    draining = models.BooleanField(default=False)
    # Since when nobody answers at the address of its Spark Connect server; null where one does.
    spark_away_since = models.DateTimeField(null=True)
    # Slots that stay free while a run is at work, or waits, that is to have fewer neighbours.
    closed_slots = models.PositiveIntegerField(default=0, db_default=0)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    def state_at(self, now: datetime) -> GatewayState:
        """Return the state: a gateway that signed off and fell silent has stopped, else is lost."""
        if self.last_seen > now - GATEWAY_SILENCE:
            return GatewayState.DRAINING if self.draining else GatewayState.WORKING
        return GatewayState.STOPPED if self.draining else GatewayState.LOST

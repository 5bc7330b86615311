"""Where runs are executed."""

from django.db import models

from assets_app.models.states import Queue


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

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

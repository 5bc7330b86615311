"""Hooks: functions that are called after a run."""

from django.db import models
from django.db.models import Q

from assets_app.models.attempts import RunAttempt
from assets_app.models.states import HookOption


class RunHook(models.Model):
    """A function to be called since a run has ended with this attempt.

    The row is written in the transaction that ends the run. The worker that sets ``begun_at`` calls
    the function; no worker calls the function a second time, even if the first call fails.
    """

    attempt = models.OneToOneField(RunAttempt, on_delete=models.CASCADE, related_name="hook")
    option = models.CharField(max_length=10, choices=HookOption)
    # When the hook was last announced to workers: a message may be lost.
    sent_at = models.DateTimeField()
    begun_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(option__in=HookOption.values), name="hook_option_known"
            ),
        )
        indexes = (
            models.Index(
                fields=("sent_at",), condition=Q(begun_at__isnull=True), name="hook_not_begun"
            ),
        )

    def __str__(self) -> str:
        return f"{self.option} of {self.attempt}"

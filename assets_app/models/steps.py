"""Steps of attempts: the set-up, the asset's function and the tear-down."""

from django.db import models
from django.db.models import Q

from assets_app.models.attempts import RunAttempt
from assets_app.models.states import StepKind, StepState


class AttemptStep(models.Model):
    """A step of an attempt whose producer has a set-up or a tear-down.

    A runner reports the steps; the end of the attempt adds the steps that were not run.
    """

    attempt = models.ForeignKey(
        RunAttempt, on_delete=models.CASCADE, related_name="steps", db_index=False
    )
    # The place among the steps of the attempt.
    position = models.PositiveSmallIntegerField()
    kind = models.CharField(max_length=10, choices=StepKind)
    # The name of the function.
    name = models.TextField()
    state = models.CharField(max_length=10, choices=StepState)
    error = models.TextField(blank=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("position",)
        constraints = (
            models.UniqueConstraint(fields=("attempt", "position"), name="step_position"),
            models.CheckConstraint(
                condition=Q(state="running", started_at__isnull=False, ended_at__isnull=True)
                | Q(state="not_run", started_at__isnull=True, ended_at__isnull=True)
                | Q(
                    state__in=("succeeded", "failed", "stopped"),
                    started_at__isnull=False,
                    ended_at__isnull=False,
                ),
                name="step_times_of_state",
            ),
        )

    def __str__(self) -> str:
        return f"attempt {self.attempt_id} {self.kind}"

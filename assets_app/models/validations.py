"""Results of the validations of data that attempts read and wrote."""

from django.db import models
from django.db.models import Q

from assets_app.models.attempts import RunAttempt
from assets_app.models.catalogue import Asset


class ValidationResult(models.Model):
    """The result of one validation of one asset in an attempt, kept even if the attempt fails."""

    class When(models.TextChoices):
        INLET = "inlet", "Input, before the run"
        OUTLET = "outlet", "Output, after the run"

    class Severity(models.TextChoices):
        ERROR = "error", "Error"
        WARN = "warn", "Warning"

    attempt = models.ForeignKey(
        RunAttempt, on_delete=models.CASCADE, related_name="validations", db_index=False
    )
    position = models.PositiveIntegerField()
    asset = models.ForeignKey(Asset, on_delete=models.CASCADE, related_name="+")
    when = models.CharField(max_length=10, choices=When)
    name = models.CharField(max_length=200)
    # The expectation, as a sentence.
    description = models.TextField(blank=True)
    severity = models.CharField(max_length=10, choices=Severity)
    passed = models.BooleanField()
    # False when the validation could not be evaluated, and failed for that reason.
    evaluated = models.BooleanField()
    # The observation, as a sentence, and as facts: {"rows", "failing", "examples": [...], ...}.
    message = models.TextField(blank=True)
    observed = models.JSONField(default=dict)

    class Meta:
        ordering = ("position",)
        constraints = (
            models.UniqueConstraint(fields=("attempt", "position"), name="validation_position"),
            models.CheckConstraint(
                condition=Q(when__in=("inlet", "outlet"), severity__in=("error", "warn")),
                name="validation_words_known",
            ),
        )

    def __str__(self) -> str:
        return f"attempt {self.attempt_id} {self.name}"

    @property
    def blocks(self) -> bool:
        """Whether the validation stopped the run."""
        return not self.passed and self.severity == self.Severity.ERROR

    @property
    def outcome(self) -> str:
        """The state to show: passed, warned, failed, not_evaluated, or not_evaluated_warned."""
        if self.passed:
            return "passed"
        if not self.evaluated:
            return "not_evaluated" if self.blocks else "not_evaluated_warned"
        return "failed" if self.blocks else "warned"

"""Work that waits for the bulk worker: requests about a backfill, and ended runs of a backfill."""

from django.db import models
from django.db.models import Q

from assets_app.models import (
    Run,
)
from backfills_app.models.backfills import Backfill


class PendingControl(models.Model):
    """A request about a backfill that the bulk worker has yet to carry out.

    The insert waits for no lock. While such a row exists, no partition of the backfill is admitted.
    Rows of the same verb are carried out together.
    """

    class Verb(models.TextChoices):
        WITHDRAW = "withdraw", "Withdraw runs that have not begun"
        RETRY = "retry", "Retry"
        LOOK_AGAIN = "look_again", "Examine waiting partitions again"

    backfill = models.ForeignKey(Backfill, on_delete=models.CASCADE, related_name="pending")
    verb = models.CharField(max_length=10, choices=Verb)
    # For a retry: whether it takes the newest code, and whether it takes canceled partitions too.
    is_newest_code = models.BooleanField(default=False)
    is_canceled_too = models.BooleanField(default=False)

    class Meta:
        ordering = ("id",)
        constraints = (
            models.CheckConstraint(
                condition=Q(verb__in=("withdraw", "retry", "look_again")),
                name="pending_control_verb_known",
            ),
        )

    def __str__(self) -> str:
        return f"{self.backfill_id} {self.verb}"


class EndedRun(models.Model):
    """A run that has ended, or a run to which a backfill has left partitions. Once the run has
    ended, the next admission marks partitions ready that follow.

    A row is written in the transaction that ends the run, since two runs that end at once would not
    see each other's end; and in the transaction that leaves partitions to a run of another request,
    since that run may be ending just then. A row is never unique: an insert waits for no other
    transaction.
    """

    backfill = models.ForeignKey(Backfill, on_delete=models.CASCADE, related_name="ended_runs")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")

    def __str__(self) -> str:
        return f"{self.backfill_id} run {self.run_id}"

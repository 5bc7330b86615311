"""Ends what an attempt has left behind: its work on Spark, and data that nobody will publish."""

from django.db.models import Exists, OuterRef

from assets_app.execution.engines import engine_of
from assets_app.execution.publishing import discard_staging
from assets_app.models import AttemptOutcome, AttemptOutlet, ProducerVersion, RunAttempt
from slicewise.runner.client import WarmParent

# Attempts that a worker looks back at when it starts: more than any has begun in its last moment.
_LATEST = 1000


def clear_away(
    parent: WarmParent, attempt: RunAttempt, version: ProducerVersion, *, has_session: bool = True
) -> None:
    """Stop the attempt's work on Spark, if it may have some, and remove what it has staged for
    whatever the version of its run makes.

    With a Spark server its work has gone. Raises MayGoOn where the work cannot be seen to have
    ended.
    """
    try:
        if has_session:
            engine_of(attempt).stop(parent, attempt)
    finally:
        discard_staging(attempt, version)


def clear_failed_publications() -> None:
    """Remove what was staged by attempts whose publication failed lately.

    That is on record before the data is removed, and its worker may have been killed in between:
    nobody else would come back to it.
    """
    latest = RunAttempt.objects.order_by("-pk").values("pk")[:_LATEST]
    intended = AttemptOutlet.objects.filter(attempt=OuterRef("pk"))
    failed = RunAttempt.objects.filter(Exists(intended), outcome=AttemptOutcome.FAILED)
    for attempt in failed.filter(pk__in=latest).select_related("run__producer_version"):
        discard_staging(attempt, attempt.run.producer_version)

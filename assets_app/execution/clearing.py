"""Ends what an attempt has left behind: its work on Spark, and data that nobody will publish."""

from assets_app.execution.engines import engine_of
from assets_app.execution.publishing import discard_staging
from assets_app.models import ProducerVersion, RunAttempt
from slicewise.runner.client import WarmParent


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

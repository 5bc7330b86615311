"""The tasks of the bulk worker."""

from celery import shared_task

from assets_app.execution.queue.coalescing import Coalesced
from backfills_app.services.advance.advancing import ROUND_SECONDS
from backfills_app.services.advance.advancing import advance as advance_backfills

# A run of a million partitions is claimed, or canceled, in one step of minutes: meanwhile another
# round advances other backfills, and passes over the backfill that the step has locked.
_rounds = Coalesced(advance_backfills, relieved_after=2 * ROUND_SECONDS)


@shared_task(name="backfills_app.tasks.advance")
def advance() -> None:
    """Advance every unfinished backfill."""
    _rounds.request()

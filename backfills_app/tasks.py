"""Tasks of the worker of the queue `bulk`."""

from celery import shared_task

from assets_app.execution.coalescing import Coalesced
from backfills_app.services.advancing import ROUND_SECONDS
from backfills_app.services.advancing import advance as advance_backfills

# A run of a million partitions is claimed, or canceled, in one step of minutes: other backfills go
# on meanwhile, and that one is passed over, since the step has its lock.
_rounds = Coalesced(advance_backfills, relieved_after=2 * ROUND_SECONDS)


@shared_task(name="backfills_app.tasks.advance")
def advance() -> None:
    """Move every unfinished backfill on."""
    _rounds.request()

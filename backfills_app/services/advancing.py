"""Moves every unfinished backfill on: expand what is being created, admit what waits."""

from backfills_app.models import ENDED_STATES, Backfill, BackfillState
from backfills_app.services.admission import admit
from backfills_app.services.expansion import expand
from backfills_app.services.messages import nudge_advance


def advance() -> None:
    """One round over all unfinished backfills: one chunk or one admission each, so that none waits
    for another.
    """
    unfinished = Backfill.objects.exclude(state__in=ENDED_STATES).order_by("pk")
    more = False
    for backfill_id, state in unfinished.values_list("pk", "state"):
        if state == BackfillState.CREATING:
            more = expand(backfill_id) or more
        admit(backfill_id)
    if more:
        nudge_advance()

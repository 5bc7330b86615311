"""Moves every unfinished backfill on: expand what is being created, admit what waits, cancel what
is left.
"""

import psycopg
import structlog
from django.db import DataError, IntegrityError

from backfills_app.models import ENDED_STATES, Backfill, BackfillState
from backfills_app.services.admission import admit
from backfills_app.services.control import give_up, go_on_canceling
from backfills_app.services.counting import note_start
from backfills_app.services.expansion import expand
from backfills_app.services.messages import nudge_advance

log = structlog.get_logger(__name__)

# What another try would say again, since it lies in what the backfill asks for. COPY raises the
# driver's own errors.
_DATA_ERRORS = (
    *(ValueError, TypeError, LookupError, ArithmeticError),
    *(DataError, IntegrityError, psycopg.DataError, psycopg.IntegrityError),
)
_MAY_HAVE_BEGUN = (BackfillState.RUNNING, BackfillState.PAUSED, BackfillState.CANCELING)


def advance() -> None:
    """One round over all unfinished backfills: one chunk or one admission each, so that none waits
    for another.
    """
    unfinished = Backfill.objects.exclude(state__in=ENDED_STATES).order_by("pk")
    more = False
    for backfill_id, state, began in unfinished.values_list("pk", "state", "run_start_date"):
        try:
            if began is None and state in _MAY_HAVE_BEGUN:
                note_start(backfill_id)
            # Being paused keeps it from starting, not from being written down.
            if state in (BackfillState.CREATING, BackfillState.PAUSED):
                more = _expand(backfill_id) or more
            elif state == BackfillState.CANCELING:
                more = go_on_canceling(backfill_id) or more
            _admit(backfill_id)
        except Exception:  # whatever is wrong with one keeps no other waiting
            log.exception("backfill not moved on", backfill=backfill_id)
    if more:
        nudge_advance()


def _expand(backfill_id: int) -> bool:
    try:
        return expand(backfill_id)
    except _DATA_ERRORS as error:
        _give_up(backfill_id, "It could not be expanded", error)
        return False


def _admit(backfill_id: int) -> None:
    try:
        admit(backfill_id)
    except _DATA_ERRORS as error:
        _give_up(backfill_id, "It could not go on", error)


def _give_up(backfill_id: int, what: str, error: Exception) -> None:
    log.exception("backfill given up", backfill=backfill_id)
    give_up(backfill_id, f"{what}: {type(error).__name__}: {error}")

"""Rounds over all unfinished backfills: each backfill is expanded, requests about it are carried
out, and its waiting partitions are admitted.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from time import monotonic
from typing import NamedTuple

import psycopg
from django.db.models import Exists, OuterRef, Q

from assets_app.catalogue.texts import storable
from assets_app.execution.database import is_passing
from assets_app.queries.clock import database_now
from backfills_app.models import ENDED_STATES, Backfill, BackfillState, PendingControl
from backfills_app.services.advance.admission import admit
from backfills_app.services.advance.carrying import carry_out, give_up
from backfills_app.services.advance.expansion import expand
from backfills_app.services.bookkeeping.counting import note_start
from backfills_app.services.bookkeeping.messages import nudge_advance

log = logging.getLogger(__name__)

# A backfill that could not advance for so long is given up. The pauses between tries grow with the
# time since the first failure.
PATIENCE = timedelta(hours=24)
_SHORTEST_PAUSE, _LONGEST_PAUSE = timedelta(seconds=1), timedelta(minutes=5)
# A round covers the backfills that exist when the round begins: after a short round a new backfill
# is seen soon.
ROUND_SECONDS = 1.0
_MAY_HAVE_BEGUN = (BackfillState.RUNNING, BackfillState.PAUSED, BackfillState.CANCELING)


class _Unfinished(NamedTuple):
    """The columns of an unfinished backfill that decide on its turns in a round."""

    id: int
    state: str
    has_begun: bool

    @property
    def may_be_unwritten(self) -> bool:
        """Whether some partitions may still have to be expanded: expansion continues during a
        pause.
        """
        return self.state in (BackfillState.CREATING, BackfillState.PAUSED)


class _Pass:
    """The turns of unfinished backfills at one kind of work. Each round begins after the backfill
    that had the last turn in the round before.
    """

    def __init__(self, work: Callable[[_Unfinished], bool]) -> None:
        self._work = work
        self._last = 0

    def run(self, backfills: Sequence[_Unfinished], deadline: float) -> bool:
        """Give the first backfill a turn, and further backfills until the deadline; return whether
        work is left.
        """
        is_work_left = False
        in_turn = sorted(backfills, key=lambda row: (row.id <= self._last, row.id))
        for number, backfill in enumerate(in_turn):
            if number and monotonic() > deadline:
                return True
            self._last = backfill.id
            try:
                is_work_left = self._work(backfill) or is_work_left
            except Exception:  # an error of one backfill stops no other
                log.exception("backfill not advanced", extra={"backfill": backfill.id})
        return is_work_left


def advance() -> None:
    """Make one round over all unfinished backfills: an admission or a chunk for each, for as many
    as a second allows. Admissions come first, so that slots do not wait for an expansion.
    """
    deadline = monotonic() + ROUND_SECONDS
    is_due = Q(try_again_at=None) | Q(try_again_at__lte=database_now())
    # A cancellation needs nothing that may be missing, and no request waits for the next try of a
    # stalled backfill.
    is_asked_for = Exists(PendingControl.objects.filter(backfill=OuterRef("pk")))
    rows = (
        Backfill.objects.exclude(state__in=ENDED_STATES)
        .filter(is_due | Q(state=BackfillState.CANCELING) | Q(is_asked_for))
        .order_by("pk")
    )
    unfinished = [
        _Unfinished(pk, state, began is not None)
        for pk, state, began in rows.values_list("pk", "state", "run_start_date")
    ]
    # Paused backfills are included, so that a pause is carried out as soon as a cancellation.
    is_work_left = _admissions.run(
        [row for row in unfinished if row.state != BackfillState.CREATING], deadline
    )
    if _expansions.run([row for row in unfinished if row.may_be_unwritten], deadline):
        is_work_left = True
    if is_work_left:
        nudge_advance()


def _advance_admission(backfill: _Unfinished) -> bool:
    _note_start(backfill)
    is_work_left = carry_out(backfill.id)
    # For a paused backfill only its requests are carried out here: its expansion decides whether
    # the backfill is stalled.
    if backfill.state != BackfillState.PAUSED:
        _admit(backfill.id)
    return is_work_left


def _advance_expansion(backfill: _Unfinished) -> bool:
    _note_start(backfill)
    is_work_left = carry_out(backfill.id)
    is_more_left = _expand(backfill.id)
    if is_more_left is False:
        _admit(backfill.id)
    return bool(is_more_left) or is_work_left


def _note_start(backfill: _Unfinished) -> None:
    if not backfill.has_begun and backfill.state in _MAY_HAVE_BEGUN:
        note_start(backfill.id)


_admissions, _expansions = _Pass(_advance_admission), _Pass(_advance_expansion)


def _expand(backfill_id: int) -> bool | None:
    """Expand the next chunk; return whether more is left to expand, None where expansion failed."""
    try:
        is_more_left = expand(backfill_id)
    except Exception as error:
        if _is_database_error(error):
            raise
        _stall(backfill_id, "It could not be expanded", error)
        return None
    if is_more_left:
        _clear_stall(backfill_id)
    return is_more_left


def _admit(backfill_id: int) -> None:
    try:
        partition_count = admit(backfill_id)
    except Exception as error:
        if _is_database_error(error):
            raise
        _stall(backfill_id, "It could not go on", error)
    else:
        if partition_count is not None:
            _clear_stall(backfill_id)


def _is_database_error(error: Exception) -> bool:
    """Return whether the database was away or busy, so that the error says nothing about the
    backfill.

    Any other error most likely comes from the request of the backfill; a plug-in may raise any
    exception. But a worker may lack a plug-in only during a rolling deployment: the backfill is
    tried again, after pauses. COPY raises errors of the driver itself.
    """
    is_of_driver = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return is_of_driver or is_passing(error)


def _stall(backfill_id: int, failed_step: str, error: Exception) -> None:
    """Record why a backfill does not advance, and when to try again; give the backfill up after
    PATIENCE.
    """
    message = f"{failed_step}: {type(error).__name__}: {error}"
    now, backfill = database_now(), Backfill.objects.get(pk=backfill_id)
    since = backfill.stalled_since or now
    if now - since >= PATIENCE:
        log.exception("backfill given up", extra={"backfill": backfill_id})
        _clear_stall(backfill_id)
        give_up(backfill_id, message)
        return
    log.exception("backfill stalled", extra={"backfill": backfill_id})
    pause = min(max(now - since, _SHORTEST_PAUSE), _LONGEST_PAUSE)
    Backfill.objects.filter(pk=backfill_id).update(
        stalled_since=since, stalled_error=storable(message), try_again_at=now + pause
    )


def _clear_stall(backfill_id: int) -> None:
    stalled = Backfill.objects.filter(pk=backfill_id, stalled_since__isnull=False)
    stalled.update(stalled_since=None, stalled_error="", try_again_at=None)

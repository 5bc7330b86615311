"""Takes back the runs of a backfill that have not begun: their partitions wait again, and others
may have them meanwhile.
"""

from collections.abc import Collection
from typing import Any

from django.db import connection
from django.db.models import Max

from assets_app.execution.withdrawing import (
    has_untried_runs,
    recall,
    untried_runs_of,
    waiting_runs_of,
    withdraw_runs,
)
from assets_app.models import Run, RunState
from backfills_app.models import ENDED_STATES, Backfill, BackfillState, EndedRun
from backfills_app.services.counting import derive_states, shift_counts
from backfills_app.services.locks import try_lock
from backfills_app.services.messages import nudge_advance

_FORGET = """
WITH back AS (
    UPDATE backfills_app_backfillpartition SET state = 'waiting', run_id = NULL
    WHERE run_id = ANY(%s) AND state = 'active' RETURNING backfill_asset_id
)
SELECT backfill_asset_id, count(*) FROM back GROUP BY 1 ORDER BY 1
"""
# Other backfills have left partitions to these runs.
_LEFT_TO_THEM = """
SELECT piece.backfill_id, array_agg(DISTINCT wanted.run_id)
FROM backfills_app_backfillpartition AS wanted
JOIN backfills_app_backfillasset AS piece ON piece.id = wanted.backfill_asset_id
WHERE wanted.run_id = ANY(%s) AND piece.backfill_id <> %s
GROUP BY 1 ORDER BY 1
"""
_TAKE_OVER = """
WITH left_to AS (
    UPDATE backfills_app_backfillpartition AS wanted
    SET run_id = NULL,
        state = CASE WHEN %(goes_on)s THEN 'waiting' ELSE wanted.state END,
        reason = CASE WHEN %(goes_on)s THEN '' ELSE wanted.reason END
    FROM backfills_app_backfillasset AS piece
    WHERE wanted.run_id = ANY(%(runs)s) AND piece.id = wanted.backfill_asset_id
      AND piece.backfill_id = %(backfill)s
    RETURNING wanted.backfill_asset_id
)
SELECT backfill_asset_id, count(*) FROM left_to GROUP BY 1 ORDER BY 1
"""


def take_back(backfill: Backfill, most: int) -> bool:
    """Let the partitions of runs that have not begun wait again, of some ``most`` partitions at a
    time: their turn comes anew. Return whether any are left.

    Under the backfill's lock. What another backfill has left to such a run, that one makes itself;
    a run stays for now where somebody else is just changing that backfill or that run.
    """
    _withdraw(backfill, untried_runs_of(backfill.group, most), set())
    return has_untried_runs(backfill.group)


def take_back_waiting(backfill: Backfill) -> None:
    """Withdraw all runs that wait for an earlier partition, since the earlier partition may be put
    back into the queue and has to come first then.
    """
    _withdraw(backfill, waiting_runs_of(backfill.group), set())


def _withdraw(backfill: Backfill, run_ids: list[int], seen: set[int]) -> None:
    """Withdraw the runs, and those of other backfills that come after them. The states of those are
    derived last: until its end a transaction keeps the rows of backfills, which requests need.
    """
    going_on: set[int] = set()
    _unmake(backfill, run_ids, seen, going_on)
    if going_on:
        derive_states(going_on)
        nudge_advance()


def _unmake(backfill: Backfill, run_ids: list[int], seen: set[int], going_on: set[int]) -> None:
    """``seen`` are the backfills whose waiting runs are being taken back already."""
    seen.add(backfill.pk)
    if not run_ids:
        return
    # The runs are locked by now: nobody leaves anything to them any more.
    with connection.cursor() as cursor:
        cursor.execute(_LEFT_TO_THEM, [run_ids, backfill.pk])
        left_to = cursor.fetchall()
    kept = _kept(run_ids, {run for other, runs in left_to if not try_lock(other) for run in runs})
    recall(sorted(kept))
    gone = [run for run in run_ids if run not in kept]
    for other, runs in left_to:
        if waited_for := sorted(set(runs) - kept):
            _take_over(other, waited_for, seen, going_on)
    with connection.cursor() as cursor:
        cursor.execute(_FORGET, [gone])
        back = cursor.fetchall()
    for piece_id, number in back:
        shift_counts(piece_id, {"active": -number, "waiting": number})
    EndedRun.objects.filter(run__in=gone).delete()
    withdraw_runs(gone)


def _kept(run_ids: Collection[int], wanted: set[int]) -> set[int]:
    """Those that stay, and all that come before one that waits: made anew after that one was, they
    would not be what it was made of.
    """
    waiting = Run.objects.filter(pk__in=wanted, state=RunState.WAITING) if wanted else None
    last = waiting.aggregate(last=Max("pk"))["last"] if waiting is not None else None
    return wanted | {run for run in run_ids if last is not None and run < last}


def _take_over(backfill_id: int, run_ids: list[int], seen: set[int], going_on: set[int]) -> None:
    """A backfill that goes on makes itself what it had left to these runs."""
    over = (*ENDED_STATES, BackfillState.CANCELING)
    rows = Backfill.objects.select_related("group").filter(pk=backfill_id)
    goes_on = rows.exclude(state__in=over).first()
    if goes_on is not None and backfill_id not in seen:
        # Runs first, then the backfill's own rows: the order in which the end of a run takes them.
        _unmake(goes_on, waiting_runs_of(goes_on.group), seen, going_on)
    asked: dict[str, Any] = {
        "goes_on": goes_on is not None, "runs": run_ids, "backfill": backfill_id,
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_OVER, asked)
        taken = cursor.fetchall()
    if goes_on:
        for piece_id, number in taken:
            shift_counts(piece_id, {"skipped": -number, "waiting": number})
        going_on.add(backfill_id)

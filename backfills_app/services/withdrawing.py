"""Takes back the runs of a backfill that have not begun: their partitions wait again, and others
may have them meanwhile.
"""

from typing import Any

from django.db import connection

from assets_app.execution.withdrawing import recall, untried_runs_of, withdraw_runs
from backfills_app.models import ENDED_STATES, Backfill, BackfillState
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


def take_back(backfill: Backfill) -> None:
    """Let the partitions of runs that have not begun wait again: their turn comes anew.

    Under the backfill's lock. What another backfill has left to such a run, that one makes itself;
    a run stays where somebody else is just changing that backfill.
    """
    run_ids = untried_runs_of(backfill.group)
    if not run_ids:
        return
    # The runs are locked by now: nobody leaves anything to them any more.
    with connection.cursor() as cursor:
        cursor.execute(_LEFT_TO_THEM, [run_ids, backfill.pk])
        left_to = cursor.fetchall()
    kept = {run for other, runs in left_to if not try_lock(other) for run in runs}
    recall(sorted(kept))
    gone = [run for run in run_ids if run not in kept]
    for other, runs in left_to:
        if waited_for := sorted(set(runs) - kept):
            _take_over(other, waited_for)
    with connection.cursor() as cursor:
        cursor.execute(_FORGET, [gone])
        back = cursor.fetchall()
    for piece_id, number in back:
        shift_counts(piece_id, {"active": -number, "waiting": number})
    withdraw_runs(gone)


def _take_over(backfill_id: int, run_ids: list[int]) -> None:
    """A backfill that goes on makes itself what it had left to these runs."""
    over = (*ENDED_STATES, BackfillState.CANCELING)
    goes_on = Backfill.objects.filter(pk=backfill_id).exclude(state__in=over).exists()
    asked: dict[str, Any] = {"goes_on": goes_on, "runs": run_ids, "backfill": backfill_id}
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_OVER, asked)
        taken = cursor.fetchall()
    if goes_on:
        for piece_id, number in taken:
            shift_counts(piece_id, {"skipped": -number, "waiting": number})
        derive_states([backfill_id])
        nudge_advance()

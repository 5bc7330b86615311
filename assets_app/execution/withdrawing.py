"""Takes back what has not begun: the runs of a group that stand in the queue give up their slices.

Whoever asked for them keeps the intent and asks again, with other terms or later.
"""

from collections.abc import Sequence

from django.db import connection

from assets_app.execution.transitions import move_all
from assets_app.models import RunGroup, RunState

# Only what nobody has ever tried: a run that was retried, or that failed and waits for its next
# attempt, has a history, and stays in the queue.
_LOCK = """
SELECT id, state, attempt_count = 0 AND queued_at <= created_at FROM assets_app_run
WHERE group_id = %s AND state IN ('queued', 'dispatched')
ORDER BY id FOR UPDATE
"""
# In the order in which claims and ends of runs take the slices.
_UNMAKE = (
    """
WITH held AS MATERIALIZED (
    SELECT id FROM assets_app_assetpartition WHERE held_by_id = ANY(%s)
    ORDER BY asset_id, identity, key FOR UPDATE
)
UPDATE assets_app_assetpartition AS slice SET held_by_id = NULL
FROM held WHERE slice.id = held.id
""",
    "DELETE FROM assets_app_runpartition WHERE run_id = ANY(%s)",
    "DELETE FROM assets_app_run WHERE id = ANY(%s)",
)


def untried_runs_of(group: RunGroup) -> list[int]:
    """Hold still what of a group has not begun, in a transaction of the caller's; the ids of those
    runs that nobody has ever tried. What has a history goes back to the queue.
    """
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [group.pk])
        waiting = cursor.fetchall()
    kept = [run_id for run_id, _, is_untried in waiting if not is_untried]
    recall(kept)
    return [run_id for run_id, _, is_untried in waiting if is_untried]


def recall(run_ids: Sequence[int]) -> None:
    """Put runs that were sent to a worker, and not begun, back to the queue."""
    move_all(run_ids, RunState.DISPATCHED, RunState.QUEUED, dispatched_at=None)


def withdraw_runs(run_ids: Sequence[int]) -> None:
    """Unmake runs that `untried_runs_of` has found, in the same transaction.

    A worker that is told of one later finds none. Whoever knows them by their ids forgets them
    before the transaction ends.
    """
    if not run_ids:
        return
    with connection.cursor() as cursor:
        for statement in _UNMAKE:
            cursor.execute(statement, [list(run_ids)])

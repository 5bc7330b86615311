"""Takes back what has not begun: the runs of a group that stand in the queue give up their slices.

Whoever asked for them keeps the intent and asks again, with other terms or later.
"""

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
_RELEASE = """
WITH held AS MATERIALIZED (
    SELECT id FROM assets_app_assetpartition WHERE held_by_id = ANY(%s)
    ORDER BY asset_id, identity, key FOR UPDATE
)
UPDATE assets_app_assetpartition AS slice SET held_by_id = NULL
FROM held WHERE slice.id = held.id
"""


def withdraw_runs_of(group: RunGroup) -> list[int]:
    """Unmake the runs of a group that have not begun, in a transaction of the caller's; their ids.

    A worker that is told of one later finds none. What has a history goes back to the queue. The
    caller forgets the runs that it knew by these ids before the transaction ends.
    """
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [group.pk])
        waiting = cursor.fetchall()
        untried = [run_id for run_id, _, is_untried in waiting if is_untried]
        kept = [run_id for run_id, _, is_untried in waiting if not is_untried]
        move_all(kept, RunState.DISPATCHED, RunState.QUEUED, dispatched_at=None)
        if untried:
            cursor.execute(_RELEASE, [untried])
            cursor.execute("DELETE FROM assets_app_runpartition WHERE run_id = ANY(%s)", [untried])
            cursor.execute("DELETE FROM assets_app_run WHERE id = ANY(%s)", [untried])
    return untried

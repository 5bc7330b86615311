"""Takes back what has not begun: the runs of a group that stand in the queue, or wait for the
partition before their own, give up their slices.

Whoever asked for them keeps the intent and asks again, with other terms or later.
"""

from collections.abc import Sequence

from django.db import connection

from assets_app.execution.transitions import move_all
from assets_app.models import RunGroup, RunState

# Only what nobody has ever tried: a run that was retried, or that failed and waits for its next
# attempt, has a history, and stays in the queue. One that has waited was queued later than made, as
# a retried one was, which needs nothing any more.
_LOCK = """
SELECT run.id, run.attempt_count = 0 AND (
    run.queued_at IS NULL OR run.queued_at <= run.created_at
    OR EXISTS (SELECT FROM assets_app_runneed AS need WHERE need.run_id = run.id)
)
FROM assets_app_run AS run WHERE run.group_id = %s AND run.state = ANY(%s)
ORDER BY run.id FOR UPDATE OF run
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
    "DELETE FROM assets_app_runneed WHERE run_id = ANY(%s)",
    "DELETE FROM assets_app_runpartition WHERE run_id = ANY(%s)",
    "DELETE FROM assets_app_run WHERE id = ANY(%s)",
)


def untried_runs_of(group: RunGroup) -> list[int]:
    """Hold still what of a group has not begun, in a transaction of the caller's; the ids of those
    runs that nobody has ever tried. What has a history goes back to the queue.
    """
    found = _held_still(group, RunState.WAITING, RunState.QUEUED, RunState.DISPATCHED)
    recall([run_id for run_id, is_untried in found if not is_untried])
    return [run_id for run_id, is_untried in found if is_untried]


def waiting_runs_of(group: RunGroup) -> list[int]:
    """The same of those alone that wait for the partition before their own."""
    return [run_id for run_id, _ in _held_still(group, RunState.WAITING)]


def _held_still(group: RunGroup, *states: RunState) -> list[tuple[int, bool]]:
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [group.pk, list(states)])
        found: list[tuple[int, bool]] = cursor.fetchall()
        return found


def recall(run_ids: Sequence[int]) -> None:
    """Put runs that were sent to a worker, and not begun, back to the queue."""
    move_all(run_ids, RunState.DISPATCHED, RunState.QUEUED, dispatched_at=None)


def withdraw_runs(run_ids: Sequence[int]) -> None:
    """Unmake runs that nobody has ever tried, in the transaction that holds them still.

    A worker that is told of one later finds none. Whoever knows them by their ids forgets them
    before the transaction ends.
    """
    if not run_ids:
        return
    with connection.cursor() as cursor:
        for statement in _UNMAKE:
            cursor.execute(statement, [list(run_ids)])

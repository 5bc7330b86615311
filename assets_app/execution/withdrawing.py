"""Takes back what has not begun: the runs of a group that stand in the queue, or wait for the
partition before their own, give up their slices.

Whoever asked for them keeps the intent and asks again, with other terms or later.
"""

from collections.abc import Sequence
from typing import Any

from django.db import connection

from assets_app.execution.needs import tell_waiting
from assets_app.execution.transitions import move_all
from assets_app.models import RunGroup, RunState

# Only what nobody has ever tried: a run that was retried, or that failed and waits for its next
# attempt, has a history, and stays in the queue. One that has waited was queued later than made, as
# a retried one was, which needs nothing any more.
_IS_UNTRIED = """run.attempt_count = 0 AND (
    run.queued_at IS NULL OR run.queued_at <= run.created_at
    OR EXISTS (SELECT FROM assets_app_runneed AS need WHERE need.run_id = run.id)
)"""
_WAITING = """
SELECT run.id FROM assets_app_run AS run WHERE run.group_id = %s AND run.state = 'waiting'
ORDER BY run.id FOR UPDATE OF run
"""
# The last ones first: a run that waits for the one before it goes before that one. Not waited for:
# a run that somebody is just moving, be it into its attempt, is left for the next look.
_UNTRIED = f"""
WITH untried AS (
    SELECT run.id,
           sum(run.partition_count) OVER (ORDER BY run.id DESC) - run.partition_count AS after
    FROM assets_app_run AS run
    WHERE run.group_id = %(group)s AND run.state IN ('waiting', 'queued', 'dispatched')
      AND {_IS_UNTRIED}
)
SELECT run.id FROM assets_app_run AS run
WHERE run.id IN (SELECT id FROM untried WHERE after < %(most)s)
  AND run.state IN ('waiting', 'queued', 'dispatched')
ORDER BY run.id FOR UPDATE OF run SKIP LOCKED
"""  # noqa: S608  (no text of anybody's)
_HAS_UNTRIED = f"""
SELECT EXISTS (
    SELECT FROM assets_app_run AS run
    WHERE run.group_id = %s AND run.state IN ('waiting', 'queued', 'dispatched') AND {_IS_UNTRIED}
)
"""  # noqa: S608  (the same)
_TRIED = f"""
SELECT run.id FROM assets_app_run AS run
WHERE run.group_id = %s AND run.state = 'dispatched' AND NOT ({_IS_UNTRIED})
ORDER BY run.id FOR UPDATE OF run SKIP LOCKED
"""  # noqa: S608  (the same)
# In the order in which claims and ends of runs take the slices.
_RELEASE = """
WITH held AS MATERIALIZED (
    SELECT id FROM assets_app_assetpartition WHERE held_by_id = ANY(%s)
    ORDER BY asset_id, identity, key FOR UPDATE
)
UPDATE assets_app_assetpartition AS slice SET held_by_id = NULL
FROM held WHERE slice.id = held.id
"""
_UNMAKE = (
    "DELETE FROM assets_app_runneed WHERE run_id = ANY(%s)",
    "DELETE FROM assets_app_runpartition WHERE run_id = ANY(%s)",
    "DELETE FROM assets_app_run WHERE id = ANY(%s)",
)


def untried_runs_of(group: RunGroup, most: int) -> list[int]:
    """Lock runs of a group that nobody has ever tried, in a transaction of the caller's, and return
    their ids: of some ``most`` partitions, and of one run at least. What has a history goes back to
    the queue.
    """
    recall(_ids(_TRIED, [group.pk]))
    # All that waits, or one of them might stay while what comes before it goes.
    waiting_runs_of(group)
    return _ids(_UNTRIED, {"group": group.pk, "most": most})


def has_untried_runs(group: RunGroup) -> bool:
    """Return whether the group has runs that have not begun and that nobody has ever tried."""
    with connection.cursor() as cursor:
        cursor.execute(_HAS_UNTRIED, [group.pk])
        return bool(cursor.fetchone()[0])


def waiting_runs_of(group: RunGroup) -> list[int]:
    """Lock the runs of a group that wait for the partition before their own; return their ids."""
    return _ids(_WAITING, [group.pk])


def _ids(statement: str, values: Any) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return [row[0] for row in cursor.fetchall()]


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
        cursor.execute(_RELEASE, [list(run_ids)])
        tell_waiting(run_ids)
        for statement in _UNMAKE:
            cursor.execute(statement, [list(run_ids)])

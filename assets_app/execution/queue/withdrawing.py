"""Withdrawal of runs that have not begun: the runs release their partitions.

Such runs are queued, or wait for the partition before their own. The requester of the runs keeps
the intent and requests partitions again, with other terms or later.
"""

from collections.abc import Sequence
from typing import Any

from django.db import connection

from assets_app.execution.queue.awaited_partitions import wake_dependents
from assets_app.execution.queue.transitions import move_all
from assets_app.models import RunGroup, RunState

# Only runs that no worker has ever tried: a run that was retried, or that failed and waits for its
# next attempt, has a history, and stays in the queue. A run that has waited was queued later than
# created, as a retried run was; a retried run awaits no partition any more.
_IS_UNTRIED = """run.attempt_count = 0 AND (
    run.queued_at IS NULL OR run.queued_at <= run.created_at
    OR EXISTS (SELECT FROM assets_app_awaitedpartition AS awaited WHERE awaited.run_id = run.id)
)"""
_WAITING = """
SELECT run.id FROM assets_app_run AS run WHERE run.group_id = %s AND run.state = 'waiting'
ORDER BY run.id FOR UPDATE OF run
"""
# The last runs first: a run that waits for an earlier run goes before that run. A run that another
# transaction is just moving, be it into its attempt, is not waited for, but left for the next look.
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
# In the order in which claims and ends of runs lock the partitions.
_RELEASE = """
WITH held AS MATERIALIZED (
    SELECT id FROM assets_app_assetpartition WHERE held_by_id = ANY(%s)
    ORDER BY asset_id, identity, key FOR UPDATE
)
UPDATE assets_app_assetpartition AS partition SET held_by_id = NULL
FROM held WHERE partition.id = held.id
"""
_DELETIONS = (
    "DELETE FROM assets_app_awaitedpartition WHERE run_id = ANY(%s)",
    "DELETE FROM assets_app_runpartition WHERE run_id = ANY(%s)",
    "DELETE FROM assets_app_run WHERE id = ANY(%s)",
)


def untried_runs_of(group: RunGroup, most: int) -> list[int]:
    """Lock runs of a group that no worker has ever tried, in a transaction; return the ids.

    The runs have some ``most`` partitions, and are one run at least. Dispatched runs with a history
    are requeued.
    """
    recall(_ids(_TRIED, [group.pk]))
    # All waiting runs are locked: otherwise a run might stay while the run before is withdrawn.
    waiting_runs_of(group)
    return _ids(_UNTRIED, {"group": group.pk, "most": most})


def has_untried_runs(group: RunGroup) -> bool:
    """Return whether the group has runs that have not begun and that no worker has ever tried."""
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
    """Requeue runs that were sent to a worker and have not begun."""
    move_all(run_ids, RunState.DISPATCHED, RunState.QUEUED, dispatched_at=None)


def withdraw_runs(run_ids: Sequence[int]) -> None:
    """Delete runs that no worker has ever tried, in the transaction that holds the locks.

    A worker with a late message about a deleted run finds no run. Callers that have stored ids of
    the runs delete these ids before the transaction ends.
    """
    if not run_ids:
        return
    with connection.cursor() as cursor:
        cursor.execute(_RELEASE, [list(run_ids)])
        wake_dependents(run_ids)
        for statement in _DELETIONS:
            cursor.execute(statement, [list(run_ids)])

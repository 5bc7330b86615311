"""Removal of the work on Spark and the staged data that an ended attempt has left behind.

An attempt that has ended without success, or whose publication has left data beside the new data,
has a time, ``clear_at``, at which a worker is to clear away the attempt. The tick asks a worker
until nothing is left, or a storage was away for a month. So nothing is forgotten if a worker is
killed before the removal, a message is lost, or Spark or a storage is away.
"""

import logging
from datetime import timedelta

from django.db import connection

from assets_app.execution.attempt import ending
from assets_app.execution.attempt.engines import WorkMayContinueError, engine_of
from assets_app.execution.gateway.publishing import discard_staging
from assets_app.execution.queue import messages
from assets_app.execution.queue.dispatch import live_gateways
from assets_app.models import ProducerVersion, Queue, RunAttempt
from assets_app.queries.clock import database_now
from slicewise.runner.parent_client import WarmParent

log = logging.getLogger(__name__)

_SENT_AT_ONCE = 100
# Data that could not be removed for so long after the end of an attempt stays: otherwise workers
# would search a retired storage for ever, attempt by attempt.
_LONGEST_SEARCH = timedelta(days=30)

# A worker has a minute for an answer, and more for an attempt that ended long ago. A time that is
# more than two hours ahead was set before the clock was set back.
_DUE = "(clear_at <= %(now)s OR clear_at > %(now)s + interval '2 hours')"
_IS_DUE = f"SELECT EXISTS (SELECT FROM assets_app_runattempt WHERE {_DUE})"  # noqa: S608
_POSTPONE = f"""
UPDATE assets_app_runattempt
SET clear_at = %(now)s
    + least(greatest((%(now)s - ended_at) * 0.1, interval '1 minute'), interval '1 hour')
WHERE id IN (
    SELECT attempt.id FROM assets_app_runattempt AS attempt
    JOIN assets_app_run AS run ON run.id = attempt.run_id
    WHERE {_DUE} AND run.queue = %(queue)s
    ORDER BY clear_at LIMIT %(most)s FOR UPDATE OF attempt SKIP LOCKED
)
RETURNING id
"""  # noqa: S608  (a part of the statement that has one home)


def clear_away(
    parent: WarmParent, attempt: RunAttempt, version: ProducerVersion, *, has_session: bool = True
) -> bool:
    """Stop the attempt's work on Spark and remove its staged data; return whether no data is left.

    Without ``has_session`` there is no work to stop. The data is removed for all outlets of the
    version. If the Spark server is gone, so is the work. Raises WorkMayContinueError if the end of
    the work cannot be confirmed.
    """
    row = RunAttempt.objects.filter(pk=attempt.pk)
    try:
        if has_session:
            engine_of(attempt).stop(parent, attempt)
            row.filter(may_go_on=True).update(may_go_on=False)
    except WorkMayContinueError:
        row.update(may_go_on=True)
        raise
    finally:
        is_clean = discard_staging(attempt, version)
    return is_clean


def ask_to_clear() -> int:
    """Ask workers to clear away ended attempts that are due; return the number of attempts."""
    now = database_now()
    with connection.cursor() as cursor:
        cursor.execute(_IS_DUE, {"now": now})
        if not cursor.fetchone()[0]:
            return 0
        attempt_count = 0
        for queue in Queue.values:
            if not live_gateways(queue):
                continue  # no worker would take a message, and messages would heap up
            cursor.execute(_POSTPONE, {"now": now, "queue": queue, "most": _SENT_AT_ONCE})
            attempt_ids = [row[0] for row in cursor.fetchall()]
            for attempt_id in attempt_ids:
                messages.send(messages.CLEAR_LOST_ATTEMPT, attempt_id, queue=queue)
            attempt_count += len(attempt_ids)
    return attempt_count


def clear_ended(parent: WarmParent, attempt: RunAttempt) -> None:
    """Clear away an ended attempt; where that is not possible now, a worker is asked again."""
    had_session = attempt.may_go_on
    try:
        is_clean = clear_away(
            parent, attempt, attempt.run.producer_version, has_session=had_session
        )
    except WorkMayContinueError as error:
        log.warning("work on Spark not stopped", extra={"run": attempt.run_id, "error": str(error)})
        return
    ending.cancel_cleared(attempt.run_id)
    if is_clean:
        # A task of Spark may write on for a moment after its session was interrupted.
        again = database_now() + ending.CLEAR_AFTER if had_session else None
        RunAttempt.objects.filter(pk=attempt.pk).update(clear_at=again)
    elif attempt.ended_at and database_now() - attempt.ended_at > _LONGEST_SEARCH:
        log.warning("staging given up", extra={"run": attempt.run_id, "attempt": attempt.number})
        RunAttempt.objects.filter(pk=attempt.pk).update(clear_at=None)

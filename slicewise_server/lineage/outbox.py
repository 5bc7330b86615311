"""Writers of events to send: one statement for many attempts.

The end of an attempt is written in the transaction that ends the attempt, together with the start
if that is not yet written. The sender writes the starts of attempts under way: an attempt that ends
before costs one statement, not two.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.db import connection

_WITHOUT_START = """
FROM assets_app_runattempt AS attempt
WHERE ended_at IS NULL AND NOT EXISTS (
    SELECT FROM lineage_lineageevent WHERE attempt_id = attempt.id AND NOT is_end
)
"""
UNWRITTEN_STARTS = f"SELECT started_at AS since {_WITHOUT_START}"
"""The beginnings of the attempts under way whose starts the sender is still to write."""
_COUNTED = "SELECT count(*), min(since) FROM ({starts}) AS start"

# Nobody waits here for an attempt that another transaction is about to end: that transaction writes
# the start as well. An attempt that ends later finds the start.
_STARTS_OF = """
INSERT INTO lineage_lineageevent (attempt_id, is_end, kind, at, is_open)
SELECT id, false, 'START', started_at, true FROM (
    SELECT id, started_at {without_start} ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
) AS under_way
ORDER BY id
ON CONFLICT (attempt_id, is_end) DO NOTHING
"""
_STARTS = _STARTS_OF.format(without_start=_WITHOUT_START)
# Rows get their ids in this order, and are sent in the order of ids: no end before its start.
_ENDS = """
INSERT INTO lineage_lineageevent (attempt_id, is_end, kind, at, is_open)
SELECT attempt.id, step.is_end,
       CASE WHEN NOT step.is_end THEN 'START'
            WHEN attempt.outcome = 'succeeded' THEN 'COMPLETE'
            WHEN attempt.outcome = 'failed' THEN 'FAIL'
            ELSE 'ABORT' END,
       CASE WHEN step.is_end THEN attempt.ended_at ELSE attempt.started_at END, false
FROM assets_app_runattempt AS attempt
CROSS JOIN (VALUES (false), (true)) AS step(is_end)
WHERE attempt.id = ANY(%(attempts)s) AND attempt.ended_at IS NOT NULL
ORDER BY attempt.id, step.is_end
ON CONFLICT (attempt_id, is_end) DO UPDATE SET is_open = false
    WHERE lineage_lineageevent.is_open
"""
_WITHOUT_END = """
SELECT attempt.id FROM lineage_lineageevent AS event
JOIN assets_app_runattempt AS attempt ON attempt.id = event.attempt_id
WHERE event.is_open AND attempt.ended_at IS NOT NULL
ORDER BY attempt.id LIMIT %s
"""
_AT_ONCE = 1_000


class UnwrittenStarts(NamedTuple):
    """The number of attempts under way whose starts are not written, and when the first began."""

    number: int
    oldest_at: datetime | None


def unwritten_starts() -> UnwrittenStarts:
    """Count the starts that the sender is still to write: many, or old ones, where none sends."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED.format(starts=UNWRITTEN_STARTS))
        return UnwrittenStarts(*cursor.fetchone())


def write_starts() -> int:
    """Write the starts of attempts under way; return the number of starts."""
    with connection.cursor() as cursor:
        cursor.execute(_STARTS)
        return int(cursor.rowcount)


def write_ends(attempt_ids: Sequence[int]) -> None:
    """Write the ends of attempts that have just ended, and starts that are not written."""
    with connection.cursor() as cursor:
        cursor.execute(_ENDS, {"attempts": list(attempt_ids)})


def write_missing_ends() -> int:
    """Write missing ends of ended attempts with a start; return the number of attempts.

    Such an attempt ended in a process that has no receiver in its environment.
    """
    with connection.cursor() as cursor:
        cursor.execute(_WITHOUT_END, [_AT_ONCE])
        attempt_ids = [row[0] for row in cursor.fetchall()]
    if attempt_ids:
        write_ends(attempt_ids)
    return len(attempt_ids)

"""Failures of schedules: each failing schedule keeps its error and is retried after pauses."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from django.db import connection

from assets_app.catalogue.texts import storable
from assets_app.models import Schedule

FIRST_PAUSE = timedelta(minutes=1)
_LONGEST_PAUSE = timedelta(minutes=30)
_LONGEST_ERROR = 2_000

_MOST_DOUBLINGS = 16

# A transaction that holds the row of a schedule may wait for rows that the caller holds: such a row
# is skipped.
_FAILED = """
WITH free AS MATERIALIZED (
    SELECT id, %(now)s + least(
        %(first)s::interval * power(2, least(failures, %(doublings)s)), %(longest)s::interval
    ) AS retry_at
    FROM assets_app_schedule WHERE id = ANY(%(ids)s) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE assets_app_schedule AS schedule
SET error = failed.error,
    failures = schedule.failures + 1,
    failing_since = coalesce(schedule.failing_since, %(now)s),
    retry_at = free.retry_at,
    next_at = CASE WHEN %(is_tick)s THEN free.retry_at ELSE schedule.next_at END
FROM free, unnest(%(ids)s::bigint[], %(errors)s::text[]) AS failed(id, error)
WHERE schedule.id = free.id AND failed.id = free.id
RETURNING schedule.id, schedule.retry_at
"""
_WELL_AGAIN = """
WITH free AS MATERIALIZED (
    SELECT id FROM assets_app_schedule WHERE id = ANY(%s) AND failures > 0
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE assets_app_schedule AS schedule
SET error = '', failures = 0, failing_since = NULL, retry_at = NULL
FROM free WHERE schedule.id = free.id
"""


def record_failures(
    errors: Mapping[int, Exception], now: datetime, *, is_tick: bool = False
) -> dict[int, datetime]:
    """Record the errors of schedules, by the ids of the schedules; return the next retry of each.

    Schedules whose row another transaction holds are left out: for these no error is recorded. With
    ``is_tick`` a schedule does not tick again before its retry.
    """
    if not errors:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            _FAILED,
            {
                "ids": list(errors),
                "errors": [_text(error) for error in errors.values()],
                "now": now,
                "first": str(FIRST_PAUSE),
                "longest": str(_LONGEST_PAUSE),
                "doublings": _MOST_DOUBLINGS,
                "is_tick": is_tick,
            },
        )
        return dict(cursor.fetchall())


def pause_after(failures: int) -> timedelta:
    """Return how long to wait after so many failures in a row."""
    doublings: int = min(failures - 1, _MOST_DOUBLINGS)
    return min(FIRST_PAUSE * (1 << doublings), _LONGEST_PAUSE)


def forget_failures(schedules: Iterable[Schedule]) -> None:
    """Clear the errors of schedules that have not failed this time."""
    failed_ids = [schedule.pk for schedule in schedules if schedule.failures]
    if failed_ids:
        with connection.cursor() as cursor:
            cursor.execute(_WELL_AGAIN, [failed_ids])


def _text(error: Exception) -> str:
    message = " ".join(str(error).split())
    return storable(f"{type(error).__name__}: {message}" if message else type(error).__name__)[
        :_LONGEST_ERROR
    ]

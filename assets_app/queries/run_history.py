"""Ended runs over time: how many ended in each interval, by state."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

MOST_RUNS = 20_000
"""The number of latest runs that are read: a million runs must not keep a page waiting."""

_ENDED = """
SELECT floor(extract(epoch FROM ended_at - %(since)s) / %(seconds)s)::int, state, count(*)
FROM (
    SELECT state, ended_at FROM assets_app_run ORDER BY id DESC LIMIT %(most)s
) AS latest
WHERE ended_at >= %(since)s AND ended_at < %(until)s
GROUP BY 1, 2 ORDER BY 1
"""


def ended_runs(since: datetime, step: timedelta, number: int) -> Mapping[int, Mapping[str, int]]:
    """Return the numbers of runs by state that ended in each of so many intervals from the instant
    on; intervals are numbered from 0, and empty ones left out: one statement.
    """
    values: dict[str, Any] = {
        "since": since, "until": since + number * step, "seconds": step.total_seconds(),
        "most": MOST_RUNS,
    }  # fmt: skip
    counts: dict[int, dict[str, int]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_ENDED, values)
        for interval, state, run_count in cursor.fetchall():
            counts.setdefault(interval, {})[state] = run_count
    return counts

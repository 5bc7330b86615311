"""The failed runs of a backfill, grouped by their error."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import connection

from assets_app.queries.error_groups import error_pattern

if TYPE_CHECKING:
    from backfills_app.models import Backfill

MOST_FAILED_RUNS_READ = 10_000
"""The number of latest failed runs that are read: a million runs must not keep a page waiting."""

# A run may have a million partitions, of which the first failed one is enough. The group and the
# run are compared by >= and <= instead of =, and the rows are ordered by the compared column:
# otherwise the planner takes such a row to be near, and reads through the runs of other backfills,
# or through the partitions of other runs.
_FAILED_RUNS = """
WITH latest AS MATERIALIZED (
    SELECT id, selection, error, ended_at FROM assets_app_run
    WHERE group_id >= %(group)s AND group_id <= %(group)s AND state = 'failed'
    ORDER BY group_id DESC, id DESC LIMIT %(read)s
)
SELECT id, selection, error FROM latest
WHERE (
    SELECT true FROM backfills_app_backfillpartition AS backfill_partition
    WHERE backfill_partition.run_id >= latest.id AND backfill_partition.run_id <= latest.id
      AND backfill_partition.state = 'failed'
    ORDER BY backfill_partition.run_id LIMIT 1
)
ORDER BY ended_at DESC, id LIMIT %(most)s
"""


@dataclass(frozen=True, slots=True)
class Failure:
    """Failed runs with the same error, apart from numbers and dates.

    ``examples`` are the latest runs, each with its number and its selection.
    """

    error: str
    examples: tuple[tuple[int, str], ...]
    number: int


def failures_of(backfill: "Backfill", most_runs: int = 1000) -> list[Failure]:
    """Return the latest failed runs of a backfill, grouped by error: one query, however many runs
    and partitions the backfill has.

    A run whose partitions were all put back into the queue is history, and no failure any more.
    """
    parameters = {
        "group": backfill.group_id, "read": MOST_FAILED_RUNS_READ, "most": most_runs,
    }  # fmt: skip
    groups: dict[str, list[tuple[int, str, str]]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_FAILED_RUNS, parameters)
        for pk, selection, error in cursor.fetchall():
            groups.setdefault(error_pattern(error), []).append((pk, selection, error))
    failures = [
        Failure(runs[0][2], tuple((pk, selection) for pk, selection, _ in runs[:5]), len(runs))
        for runs in groups.values()
    ]
    return sorted(failures, key=lambda failure: -failure.number)

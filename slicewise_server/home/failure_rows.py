"""The rows of the unresolved failures: a group of failed runs with the backfills of the runs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from assets_app.queries.error_groups import FailureGroup
from backfills_app.queries.runs import BackfillOfRun, backfills_of_runs

_MOST_BACKFILLS = 2


class BackfillRuns(NamedTuple):
    """A backfill, and the number of its runs in a group."""

    backfill: BackfillOfRun
    run_count: int


class FailureRow(NamedTuple):
    """A group of failed runs, the backfills with the most of these runs, and the number of further
    backfills.
    """

    group: FailureGroup
    backfills: Sequence[BackfillRuns]
    more_backfills: int


def failure_rows(groups: Sequence[FailureGroup]) -> list[FailureRow]:
    """Return the rows of these groups: one statement, none without groups."""
    backfills = backfills_of_runs([run.pk for group in groups for run in group.runs])
    return [_row(group, backfills) for group in groups]


def _row(group: FailureGroup, backfills: Mapping[int, BackfillOfRun]) -> FailureRow:
    run_counts = Counter(backfills[run.pk] for run in group.runs if run.pk in backfills)
    # The newest backfill comes first among equal numbers.
    counted_backfills = sorted(
        run_counts.items(), key=lambda item: (item[1], item[0].pk), reverse=True
    )
    return FailureRow(
        group,
        [BackfillRuns(*item) for item in counted_backfills[:_MOST_BACKFILLS]],
        max(len(counted_backfills) - _MOST_BACKFILLS, 0),
    )

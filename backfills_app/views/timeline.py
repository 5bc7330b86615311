"""The timeline of a backfill's runs: the number of runs that ended in each interval, by state."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from assets_app.queries.run_bars import (
    RunBar,
    highest_column,
    numbers_in_words,
    stacked_bars,
    sums_by_state,
)
from backfills_app.models import Backfill
from backfills_app.queries.pace import ended_by_time

COLUMNS = 60


@dataclass(frozen=True, slots=True)
class Column:
    """The runs that ended in one interval, in words and as bars from the ground up; ``x`` is the
    number of the interval.
    """

    x: int
    title: str
    bars: tuple[RunBar, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """The drawing: ``highest`` runs fill the height; ``counted`` has the numbers of ended runs by
    state; of the failed runs, the partitions of ``retried`` runs were requeued since.
    """

    first: datetime
    last: datetime
    columns: tuple[Column, ...]
    highest: int
    drawn: int
    counted: tuple[tuple[str, int], ...]
    retried: int

    @property
    def counted_text(self) -> str:
        """The number of runs by state as text: ``12 succeeded, 1 failed``."""
        return ", ".join(f"{number:,} {state}" for state, number in self.counted)

    @property
    def column_length(self) -> timedelta:
        """The length of the interval of one column."""
        return (self.last - self.first) / COLUMNS


def timeline_of(backfill: Backfill, now: datetime) -> Timeline | None:
    """Return the timeline of the runs that have ended; None before the first run has ended."""
    ended = ended_by_time(backfill, COLUMNS, now)
    if ended is None:
        return None
    highest = highest_column(ended.columns)
    return Timeline(
        ended.first,
        ended.last,
        tuple(
            Column(x, numbers_in_words(counts), stacked_bars(counts, highest))
            for x, counts in ended.columns.items()
        ),
        highest,
        ended.drawn,
        tuple(sums_by_state(ended.columns)),
        ended.retried,
    )

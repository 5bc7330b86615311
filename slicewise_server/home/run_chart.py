"""The chart of the overview: the runs of the last day, or of the last week, by state."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from django.urls import reverse

from assets_app.queries.run_bars import (
    RunBar,
    highest_column,
    numbers_in_words,
    stacked_bars,
    sums_by_state,
)
from assets_app.queries.run_history import MOST_RUNS, ended_runs

_HOURS_PER_LABEL = 6


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time up to now, cut into columns."""

    name: str
    label: str
    step: timedelta
    columns: int
    # Labels of this form are below the chart: of each day at the first column that begins on the
    # day, or of the hour at every sixth column.
    label_form: str

    def start(self, now: datetime) -> datetime:
        """Return the start of the first column; the last column contains now."""
        seconds = self.step.total_seconds()
        last = datetime.fromtimestamp(now.timestamp() // seconds * seconds, UTC)
        return last - (self.columns - 1) * self.step

    def is_labelled(self, index: int, since: datetime) -> bool:
        """Return whether the column has a label, in UTC: a script moves the labels of days to the
        days of the reader's zone.
        """
        if self.label_form == "day":
            return since.date() != (since - self.step).date()
        return index % _HOURS_PER_LABEL == 0


SPANS = {
    "24h": Span("24h", "Last 24 hours", timedelta(hours=1), 24, "hour"),
    "7d": Span("7d", "Last 7 days", timedelta(hours=6), 28, "day"),
}


@dataclass(frozen=True, slots=True)
class Column:
    """The runs that ended in one interval, with the address of the list."""

    start: datetime
    counts: Mapping[str, int]
    bars: tuple[RunBar, ...]
    url: str
    label_form: str

    @property
    def text(self) -> str:
        """The numbers of runs in words: ``12 succeeded, 1 failed``."""
        return numbers_in_words(self.counts)


@dataclass(frozen=True, slots=True)
class RunChart:
    """The drawing: the sums by state, and a column for each interval."""

    span: Span
    start: datetime
    columns: tuple[Column, ...]
    sums: tuple[tuple[str, int, str], ...]
    most_runs: int = MOST_RUNS

    @property
    def is_cut(self) -> bool:
        """Whether older runs of the span may be missing from the chart."""
        return sum(number for _, number, _ in self.sums) >= self.most_runs

    @property
    def highest(self) -> int:
        """The number of runs of the highest column: the scale of the drawing."""
        return max(sum(column.counts.values()) for column in self.columns)

    @property
    def version(self) -> object:
        """A value that changes with the drawing."""
        return (self.start, [column.counts for column in self.columns])


def run_chart(span: Span, now: datetime) -> RunChart:
    """Return the chart of the runs that ended in the span: one statement."""
    start = span.start(now)
    ended = ended_runs(start, span.step, span.columns)
    highest = highest_column(ended)
    columns = tuple(
        _column(span, start, index, ended.get(index, {}), highest) for index in range(span.columns)
    )
    sums = sums_by_state(ended)
    return RunChart(
        span,
        start,
        columns,
        tuple((state, number, _runs_url(start, None, state)) for state, number in sums),
    )


def _column(
    span: Span, start: datetime, index: int, counts: Mapping[str, int], highest: int
) -> Column:
    since = start + index * span.step
    label_form = span.label_form if span.is_labelled(index, since) else ""
    url = _runs_url(since, since + span.step) if counts else ""
    return Column(since, counts, stacked_bars(counts, highest), url, label_form)


def _runs_url(since: datetime, until: datetime | None, state: str = "") -> str:
    bounds = {
        "state": state,
        "ended_after": since.isoformat(),
        "ended_before": until.isoformat() if until else "",
    }
    query = urlencode({name: text for name, text in bounds.items() if text})
    return f"{reverse('assets:runs')}?{query}"

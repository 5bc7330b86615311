"""The timeline of a backfill's runs: the number of runs that ended in each interval, by state."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from backfills_app.models import Backfill
from backfills_app.queries.pace import ended_by_time
from partitions_app.state_badges import badge_of

PIECES = 60
HEIGHT = 40.0
_KINDS = (
    ("good", "succeeded"),
    ("bad", "failed"),
    ("neutral", "canceled"),
    ("faint", "skipped"),
)


@dataclass(frozen=True, slots=True)
class Bar:
    """One rectangle: its class, its position and its size."""

    css: str
    x: int
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Column:
    """The runs that ended in one interval, in words and as bars from the ground up."""

    title: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """The drawing: ``highest`` runs fill the height; ``counted`` has the numbers of ended runs by
    state.
    """

    first: datetime
    last: datetime
    columns: tuple[Column, ...]
    highest: int
    drawn: int
    counted: tuple[tuple[str, int], ...]

    @property
    def counted_text(self) -> str:
        """The number of runs by state as text: ``12 succeeded, 1 failed``."""
        return ", ".join(f"{number:,} {state}" for state, number in self.counted)

    @property
    def piece(self) -> timedelta:
        """The length of the interval of one column."""
        return (self.last - self.first) / PIECES


def timeline_of(backfill: Backfill, now: datetime) -> Timeline | None:
    """Return the timeline of the runs that have ended; None before the first run has ended."""
    ended = ended_by_time(backfill, PIECES, now)
    if ended is None:
        return None
    highest = max(sum(counts.values()) for counts in ended.pieces.values())
    sums = {
        state: sum(counts.get(state, 0) for counts in ended.pieces.values()) for _, state in _KINDS
    }
    return Timeline(
        ended.first,
        ended.last,
        tuple(
            _column(column_index, counts, highest) for column_index, counts in ended.pieces.items()
        ),
        highest,
        ended.drawn,
        tuple((state, number) for state, number in sums.items() if number),
    )


def _column(column_index: int, counts: Mapping[str, int], highest: int) -> Column:
    bars, ground = [], HEIGHT
    for css, state in _KINDS:
        if number := counts.get(state, 0):
            height = round(HEIGHT * number / highest, 2)
            ground = round(ground - height, 2)
            bars.append(Bar(css, column_index, max(ground, 0.0), height))
    title = ", ".join(
        f"{number:,} {badge_of(state).label.lower()}" for state, number in counts.items()
    )
    return Column(title, tuple(bars))

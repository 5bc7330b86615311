"""Numbers of ended runs by state as bars that stand on each other, and in words."""

from collections.abc import Mapping
from dataclasses import dataclass

from partitions_app.state_badges import badge_of

# The height of a drawing; its width and the places of columns are the template's.
HEIGHT = 40.0
# The classes and the states of bars, from the ground up.
_KINDS = (
    ("good", "succeeded"),
    ("bad", "failed"),
    ("neutral", "canceled"),
    ("faint", "skipped"),
)


@dataclass(frozen=True, slots=True)
class RunBar:
    """A rectangle of a column: class, top and height."""

    css: str
    y: float
    height: float


def stacked_bars(counts: Mapping[str, int], highest: int) -> tuple[RunBar, ...]:
    """Return the bars of one column; ``highest`` runs fill the height."""
    bars, ground = [], HEIGHT
    for css, state in _KINDS:
        if number := counts.get(state, 0):
            height = round(HEIGHT * number / highest, 2)
            ground = round(ground - height, 2)
            bars.append(RunBar(css, max(ground, 0.0), height))
    return tuple(bars)


def numbers_in_words(counts: Mapping[str, int]) -> str:
    """Return the numbers of runs in words: ``12 succeeded, 1 failed``."""
    return ", ".join(
        f"{counts[state]:,} {badge_of(state).label.lower()}"
        for _, state in _KINDS
        if state in counts
    )


def sums_by_state(columns: Mapping[int, Mapping[str, int]]) -> list[tuple[str, int]]:
    """Return the sums of all columns by state, without empty ones."""
    sums = [
        (state, sum(counts.get(state, 0) for counts in columns.values())) for _, state in _KINDS
    ]
    return [(state, number) for state, number in sums if number]


def highest_column(columns: Mapping[int, Mapping[str, int]]) -> int:
    """Return the number of runs in the fullest column; 1 without any."""
    return max((sum(counts.values()) for counts in columns.values()), default=1)

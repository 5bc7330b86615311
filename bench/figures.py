"""Figures, and the table of figures."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One row: the measured work, the bare counterpart, and the figure to reach.

    ``seconds`` and ``bare`` are medians of ``times`` measurements; ``measured`` is the same as
    text. ``ratio`` is the median of the ratios of consecutive pairs.
    """

    row: int
    work: str
    measured: str
    seconds: float
    reach: str
    reached: bool
    bare: str = ""
    ratio: float | None = None
    times: int = 1


@dataclass(frozen=True, slots=True)
class Pair:
    """The same work done by Slicewise and bare, one after the other, in seconds."""

    ours: float
    bare: float

    @property
    def ratio(self) -> float:
        """The time of Slicewise, divided by the time of the bare work."""
        return self.ours / self.bare


def seconds(work: Callable[[], object]) -> float:
    """Return the duration of a call in seconds."""
    began = perf_counter()
    work()
    return perf_counter() - began


def in_turns(
    ours: Callable[[], float], bare: Callable[[], float], times: int, *, warm_up: bool = False
) -> list[Pair]:
    """Measure both ``times`` times in turns, each first in every other pair.

    ``warm_up`` calls each once before, unmeasured: a Java server is slow at first.
    """
    if warm_up:
        bare()
        ours()
    pairs = []
    for number in range(times):
        if number % 2:
            mine = ours()
            pairs.append(Pair(mine, bare()))
        else:
            theirs = bare()
            pairs.append(Pair(ours(), theirs))
    return pairs


def medians(pairs: Sequence[Pair]) -> tuple[Pair, float]:
    """Return the medians of both sides, and the median of the ratios."""
    middle = Pair(median(pair.ours for pair in pairs), median(pair.bare for pair in pairs))
    return middle, median(pair.ratio for pair in pairs)


def duration(value: float) -> str:
    """Return seconds as text, with three digits and a fitting unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.3g} us"


def line(figure: Figure) -> str:
    """Return a figure on one line, for people who wait for the table."""
    ratio = "" if figure.ratio is None else f", {figure.ratio:.2f} x {figure.bare}"
    return f"{figure.row:>3}  {figure.work}: {figure.measured}{ratio}"


def show(console: Console, figures: Iterable[Figure]) -> None:
    """Print the table."""
    table = Table(title="Figures to reach, and what was measured", show_lines=True)
    table.add_column("#", justify="right")
    table.add_column("work")
    for title in ("measured", "bare", "ratio"):
        table.add_column(title, justify="right")
    table.add_column("reach")
    table.add_column("reached")
    for figure in sorted(figures, key=lambda each: each.row):
        table.add_row(
            str(figure.row),
            figure.work,
            figure.measured + (f"\nmedian of {figure.times}" if figure.times > 1 else ""),
            figure.bare,
            "" if figure.ratio is None else f"{figure.ratio:.2f} x",
            figure.reach,
            "[green]yes[/]" if figure.reached else "[red]no[/]",
        )
    console.print(table)

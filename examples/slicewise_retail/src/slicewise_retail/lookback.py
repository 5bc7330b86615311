"""A mapping to the last windows that were over."""

from collections.abc import Iterator
from dataclasses import dataclass

from slicewise import DefinitionError
from slicewise.mapping import Ranges, Span, WindowMapping, merged
from slicewise.partitions import Definition, Windows


@dataclass(frozen=True)
class Lookback(WindowMapping, kind="lookback"):
    """A partition needs the last upstream windows that ended by the end of its own.

    Windows before the upstream's start and excluded ones count, and are told as nonexistent;
    excluded ones are not needed.
    Raises DefinitionError for less than one window.
    """

    windows: int

    def __post_init__(self) -> None:
        if type(self.windows) is not int or self.windows < 1:
            raise DefinitionError(f"a Lookback takes at least one window, not {self.windows!r}")

    def check(self, downstream: Definition, upstream: Definition) -> None:
        """Raise DefinitionError unless both have windows."""
        super().check(downstream, upstream)
        if upstream is None or upstream.time_dimension is None:
            raise DefinitionError(f"{self!r} looks back over windows; the upstream has none")

    def upstream_windows(
        self, downstream: Windows, ranges: Ranges, upstream: Windows
    ) -> list[Span]:
        """The last ones before each end."""
        return merged(
            (over - self.windows, over)
            for first, stop in zip(*ranges, strict=True)
            for over in _over_at_ends(downstream, first + 1, stop + 1, upstream)
        )

    def downstream_windows(
        self, upstream: Windows, ranges: Ranges, downstream: Windows
    ) -> list[Span]:
        """Those that end once the first of a range is over, and before its last is too old."""
        firsts, stops = ranges
        over = upstream.ticks.at([first + 1 for first in firsts])
        old = upstream.ticks.at([stop + self.windows for stop in stops])
        starts, ends = downstream.ticks.ranks(over), downstream.ticks.ranks(old)
        return merged(
            (start - 1, end - 1) for start, end in zip(starts, ends, strict=True) if start < end
        )


def _over_at_ends(source: Windows, first: int, stop: int, target: Windows) -> Iterator[int]:
    """How many of the target's windows are over at ticks of the source; each number once.

    Looks at the ticks of whichever has fewer: a year of minutes costs no more than its days.
    """
    ends = source.ticks.tick(first), source.ticks.tick(stop - 1)
    low, high = target.number_at(ends[0]), target.number_at(ends[1])
    if high - low >= stop - first:
        instants = [end + 1 for end in source.ticks.ticks(first, stop)]
        yield from (rank - 1 for rank in target.ticks.ranks(instants))
        return
    edges = source.ticks.ranks(target.ticks.ticks(low, high + 2))
    for number in range(low, high + 1):
        begun, ended = edges[number - low], edges[number - low + 1]
        if max(begun, first) < min(ended, stop):
            yield number

"""Ticks that a rule lists year by year: the only function that a plug-in's calendar needs."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

from slicewise.calendar.time_text import read_moment
from slicewise.calendar.zones import DAY, EPOCH, Zone, to_instant
from slicewise.errors import DefinitionError, PartitionKeyError

YearRule = Callable[[int], Iterable[date | datetime]]

_ANCHOR_YEAR = 1970
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_YEARS = range(2, 9998)  # ticks of a year may lie in neighbouring years, and dates end there
_BLOCK_YEARS = 32


@dataclass(frozen=True)
class _Stretch:
    """The ticks of the years first to stop - 1; the first of the ticks has the number `number`."""

    first: int
    stop: int
    number: int
    instants: list[int]


class YearTicks:
    """The ticks of a rule that lists the ticks of any year.

    Numbers count from the first tick of 1970, independently of earlier calls (calendar rule 3).
    Raises DefinitionError if the ticks of a year are not in order, or lie more than a year away.
    """

    def __init__(self, rule: YearRule, zone: Zone) -> None:
        self._rule, self._zone = rule, zone
        # Never changed, only replaced: threads that extend it at the same time do no harm.
        self._known = _Stretch(_ANCHOR_YEAR, _ANCHOR_YEAR, 0, [])

    def rank(self, instant: int) -> int:
        """Return the number of the first tick at or after the instant."""
        stretch = self._around(instant, instant)
        return stretch.number + bisect_left(stretch.instants, instant)

    def tick(self, number: int) -> int:
        """Return the instant of the tick of that number."""
        stretch = self._numbered(number, number)
        return stretch.instants[number - stretch.number]

    def ticks(self, first: int, stop: int) -> Sequence[int]:
        """Return instants of the ticks numbered first to stop - 1."""
        if first >= stop:
            return ()
        stretch = self._numbered(first, stop - 1)
        return stretch.instants[first - stretch.number : stop - stretch.number]

    def number_of(self, start: int, stop: int) -> int | None:
        """Return the number of the tick at `start` if the next one is at `stop`."""
        number = self.rank(start)
        return number if self.ticks(number, number + 2) == [start, stop] else None

    def ranks(self, instants: Sequence[int]) -> Sequence[int]:
        """Return the ranks of instants in ascending order."""
        if not instants:
            return ()
        stretch = self._around(instants[0], instants[-1])
        return [stretch.number + bisect_left(stretch.instants, instant) for instant in instants]

    def at(self, numbers: Sequence[int]) -> Sequence[int]:
        """Return the instants of ticks with ascending numbers."""
        if not numbers:
            return ()
        stretch = self._numbered(numbers[0], numbers[-1])
        return [stretch.instants[number - stretch.number] for number in numbers]

    def _around(self, first: int, last: int) -> _Stretch:
        """Return the stretch of listed years, extended to all ticks near these instants."""
        years = (_year(first) - 2, _year(last) + 3)
        return self._grown(min(years[0], _ANCHOR_YEAR), max(years[1], _ANCHOR_YEAR + 1))

    def _numbered(self, first: int, last: int) -> _Stretch:
        """Return the stretch of listed years, extended to the ticks of these numbers."""
        stretch = self._known
        while first < stretch.number:
            stretch = self._further(stretch, stretch.first - _BLOCK_YEARS, stretch.stop)
        while last >= stretch.number + len(stretch.instants):
            stretch = self._further(stretch, stretch.first, stretch.stop + _BLOCK_YEARS)
        return stretch

    def _further(self, stretch: _Stretch, first: int, stop: int) -> _Stretch:
        if stretch.first == _YEARS.start > first or stretch.stop == _YEARS.stop < stop:
            raise PartitionKeyError(
                "a rule by years lists no boundaries beyond the year"
                f" {_YEARS[0] if first < stretch.first else _YEARS[-1]}"
            )
        return self._grown(first, stop)

    def _grown(self, first: int, stop: int) -> _Stretch:
        """Return the stretch, extended to the years first to stop - 1, as far as years exist."""
        stretch = self._known
        first, stop = max(first, _YEARS.start), min(stop, _YEARS.stop)
        if stretch.first <= first and stop <= stretch.stop:
            return stretch
        # In blocks: a caller that walks from year to year does not extend the stretch each time.
        first = max(min(stretch.first, first - first % _BLOCK_YEARS), _YEARS.start)
        stop = min(max(stretch.stop, stop + -stop % _BLOCK_YEARS), _YEARS.stop)
        before = self._listed(first, stretch.first)
        instants = before + stretch.instants + self._listed(stretch.stop, stop)
        _check_order(instants)
        self._known = _Stretch(first, stop, stretch.number - len(before), instants)
        return self._known

    def _listed(self, first: int, stop: int) -> list[int]:
        return [tick for year in range(first, stop) for tick in self._of_year(year)]

    def _of_year(self, year: int) -> list[int]:
        moments = list(self._rule(year))
        for boundary in moments:
            fraction = boundary.microsecond if isinstance(boundary, datetime) else 0
            if abs(boundary.year - year) > 1 or fraction:
                raise DefinitionError(
                    f"a boundary of the year {year} is in that year, the year before or the year"
                    f" after, in whole seconds, not {boundary}"
                )
        # Boundaries that a change of clocks puts on one instant are one boundary (calendar rule 4).
        return list(dict.fromkeys(map(self._instant, moments)))

    def _instant(self, moment: date | datetime) -> int:
        if isinstance(moment, datetime):
            return to_instant(read_moment(moment, self._zone))
        return self._zone.first_instant((moment.toordinal() - _EPOCH_DAY) * DAY)


def _year(instant: int) -> int:
    try:
        return (EPOCH + timedelta(seconds=instant)).year
    except OverflowError:
        return _YEARS.start if instant < 0 else _YEARS.stop


def _check_order(instants: list[int]) -> None:
    for earlier, later in pairwise(instants):
        if earlier >= later:
            shown = [
                datetime.fromtimestamp(instant, UTC).isoformat() for instant in (earlier, later)
            ]
            raise DefinitionError(
                f"boundaries ascend from year to year: {shown[1]} comes after {shown[0]}"
            )

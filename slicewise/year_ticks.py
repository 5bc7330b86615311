"""Ticks that a rule lists year by year: what a plug-in's calendar needs to say, and no more."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

from slicewise.errors import DefinitionError, PartitionKeyError
from slicewise.moments import read_moment
from slicewise.zones import DAY, EPOCH, Zone, to_instant

YearRule = Callable[[int], Iterable[date | datetime]]

_ANCHOR_YEAR = 1970
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_YEARS = range(2, 9998)  # a year's ticks may reach into the neighbouring ones, and dates end there
_BLOCK_YEARS = 32


@dataclass(frozen=True)
class _Stretch:
    """The ticks of the years first to stop - 1, of which the first one is numbered `number`."""

    first: int
    stop: int
    number: int
    instants: list[int]


class YearTicks:
    """The ticks of a rule that lists those of any year.

    Numbers are counted from the first tick of 1970, whatever was asked before (calendar rule 3).
    Raises DefinitionError where a year's ticks are not in order, or lie more than a year away.
    """

    def __init__(self, rule: YearRule, zone: Zone) -> None:
        self._rule, self._zone = rule, zone
        # Never changed, only replaced: threads that look further at once do no harm.
        self._known = _Stretch(_ANCHOR_YEAR, _ANCHOR_YEAR, 0, [])

    def rank(self, instant: int) -> int:
        """Return the number of the first tick at or after the instant."""
        known = self._around(instant, instant)
        return known.number + bisect_left(known.instants, instant)

    def tick(self, number: int) -> int:
        """Return the instant of the tick of that number."""
        known = self._numbered(number, number)
        return known.instants[number - known.number]

    def ticks(self, first: int, stop: int) -> Sequence[int]:
        """Return instants of the ticks numbered first to stop - 1."""
        if first >= stop:
            return ()
        known = self._numbered(first, stop - 1)
        return known.instants[first - known.number : stop - known.number]

    def number_of(self, start: int, stop: int) -> int | None:
        """Return the number of the tick at `start` if the next one is at `stop`."""
        number = self.rank(start)
        return number if self.ticks(number, number + 2) == [start, stop] else None

    def ranks(self, instants: Sequence[int]) -> Sequence[int]:
        """Return the ranks of instants in ascending order."""
        if not instants:
            return ()
        known = self._around(instants[0], instants[-1])
        return [known.number + bisect_left(known.instants, instant) for instant in instants]

    def at(self, numbers: Sequence[int]) -> Sequence[int]:
        """Return the instants of ticks whose numbers ascend."""
        if not numbers:
            return ()
        known = self._numbered(numbers[0], numbers[-1])
        return [known.instants[number - known.number] for number in numbers]

    def _around(self, first: int, last: int) -> _Stretch:
        """What is known, once that is all ticks near these instants."""
        years = (_year(first) - 2, _year(last) + 3)
        return self._grown(min(years[0], _ANCHOR_YEAR), max(years[1], _ANCHOR_YEAR + 1))

    def _numbered(self, first: int, last: int) -> _Stretch:
        """What is known, once the ticks of these numbers are."""
        known = self._known
        while first < known.number:
            known = self._further(known, known.first - _BLOCK_YEARS, known.stop)
        while last >= known.number + len(known.instants):
            known = self._further(known, known.first, known.stop + _BLOCK_YEARS)
        return known

    def _further(self, known: _Stretch, first: int, stop: int) -> _Stretch:
        if known.first == _YEARS.start > first or known.stop == _YEARS.stop < stop:
            raise PartitionKeyError(
                "there is no boundary so far away: the rule lists none up to the year"
                f" {_YEARS[0] if first < known.first else _YEARS[-1]}"
            )
        return self._grown(first, stop)

    def _grown(self, first: int, stop: int) -> _Stretch:
        """What is known, once that is the years first to stop - 1, as far as there are years."""
        known = self._known
        first, stop = max(first, _YEARS.start), min(stop, _YEARS.stop)
        if known.first <= first and stop <= known.stop:
            return known
        # By blocks: whoever walks on from year to year is not to pay for each anew.
        first = max(min(known.first, first - first % _BLOCK_YEARS), _YEARS.start)
        stop = min(max(known.stop, stop + -stop % _BLOCK_YEARS), _YEARS.stop)
        before = self._listed(first, known.first)
        instants = before + known.instants + self._listed(known.stop, stop)
        _check_order(instants)
        self._known = _Stretch(first, stop, known.number - len(before), instants)
        return self._known

    def _listed(self, first: int, stop: int) -> list[int]:
        return [tick for year in range(first, stop) for tick in self._of_year(year)]

    def _of_year(self, year: int) -> list[int]:
        moments = list(self._rule(year))
        for each in moments:
            fraction = each.microsecond if isinstance(each, datetime) else 0
            if abs(each.year - year) > 1 or fraction:
                raise DefinitionError(
                    f"a boundary of the year {year} lies within a year of it, on a whole second:"
                    f" not at {each}"
                )
        # Boundaries that a change of the clocks lays on one instant are one (calendar rule 4).
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
    for one, two in pairwise(instants):
        if one >= two:
            shown = [datetime.fromtimestamp(each, UTC).isoformat() for each in (one, two)]
            raise DefinitionError(
                f"boundaries ascend from year to year: {shown[1]} comes after {shown[0]}"
            )

"""Partitions by the 4-4-5 calendar, in which every period is a number of whole weeks."""

from datetime import date, timedelta
from itertools import accumulate
from typing import Literal, Unpack

from slicewise import DefinitionError, PartitionByTime
from slicewise.partitions import TimeOptions

Unit = Literal["week", "period"]
WEEK = timedelta(weeks=1)
SUNDAY = 6


class PartitionByRetailCalendar(PartitionByTime, kind="retail"):
    """One partition for each week or period of the retail year.

    The year ends on the Saturday closest to 31 January: it has 52 weeks, or 53, of which the last
    period then has one more. `unit` is "week" or "period"; `pattern` says how many weeks the three
    periods of a quarter have: "4-4-5", "4-5-4" or "5-4-4". Other arguments are those of
    PartitionByInterval. Raises DefinitionError.
    """

    unit: Unit
    pattern: str

    def __init__(
        self, unit: Unit = "period", *, pattern: str = "4-4-5", **common: Unpack[TimeOptions]
    ) -> None:
        if unit not in ("week", "period"):
            raise DefinitionError(f"the retail calendar has weeks and periods, no {unit!r}")
        if pattern not in ("4-4-5", "4-5-4", "5-4-4"):
            raise DefinitionError(f"a pattern is 4-4-5, 4-5-4 or 5-4-4, not {pattern!r}")
        super().__init__(own={"unit": unit, "pattern": pattern}, **common)

    def boundaries(self, year: int) -> list[date]:
        """The days on which weeks or periods of the retail year begin."""
        first = year_start(year)
        if self.unit == "week":
            return [first + WEEK * n for n in range((year_start(year + 1) - first) // WEEK)]
        weeks = [int(count) for count in self.pattern.split("-")] * 4
        return [first + WEEK * before for before in accumulate(weeks[:-1], initial=0)]


def year_start(year: int) -> date:
    """The Sunday after the Saturday closest to 31 January."""
    earliest = date(year, 1, 29)
    return earliest + timedelta(days=(SUNDAY - earliest.weekday()) % 7)

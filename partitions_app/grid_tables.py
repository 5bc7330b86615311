"""Pages of the grid that have time in them: calendars, hours by day, segments by time, shares."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby, islice
from typing import Literal

from django.utils.text import Truncator

from partitions_app.grid_cells import (
    Block,
    Bucketed,
    Cell,
    Row,
    ShareCell,
    SliceFact,
    Zoom,
    address,
)
from partitions_app.grid_lists import because_in, key_texts, look_in, segment_label
from partitions_app.grid_time import (
    Clock,
    Period,
    Unit,
    counts_starting,
    windows_starting,
)
from partitions_app.labels import label_of
from partitions_app.looks import MISSING, NOT_YET_DUE
from slicewise import Interval, PartitionByTime, PartitionDefinition

Shape = Literal["calendar", "table", "list"]
CountsUnit = Literal["day", "month", "year"]
# Each window of the page with the key of each segment in it.
WindowKeys = tuple[Interval, tuple[tuple[str, str], ...]]
Cells = list[WindowKeys]
# A cell with the local time at which its window starts.
Started = tuple[datetime, Cell]
_SEGMENT_IN_NAME = 60
WEEKDAYS = ("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def counts_unit(period: Period, has_segments: bool) -> CountsUnit:
    """Return the unit of time that one cell of a page of shares covers."""
    if period.zoom == "month":
        return "day"
    if period.zoom == "year":
        return "month" if has_segments else "day"
    return "year" if has_segments else "month"


def columns(period: Period, unit: CountsUnit) -> int:
    """Count the cells that one segment takes on a page of shares."""
    return {"day": len(period.days), "month": 12 * len(period.years), "year": len(period.years)}[
        unit
    ]


def exact_cells(
    definition: PartitionDefinition,
    period: Period,
    clock: Clock,
    segments: Sequence[str],
    most: int,
    starts_at: datetime | None,
) -> tuple[Cells, datetime | None]:
    """Return the windows that start in the period, with their keys, as at most so many cells.

    The second value is the local time at which the next page begins, None where all windows fit.
    """
    rule = definition.time_dimension
    if rule is None:
        raise LookupError("a grid without time has no windows")
    found = windows_starting(rule, period.first, period.stop, clock)
    if starts_at:
        found = (one for one in found if one.local_start.replace(tzinfo=None) >= starts_at)
    fitting = max(most // len(segments), 1)
    windows = list(islice(found, fitting + 1))
    more = windows[fitting].local_start.replace(tzinfo=None) if len(windows) > fitting else None
    cells = [
        (window, tuple(zip(segments, key_texts(definition, window.text, segments), strict=True)))
        for window in windows[:fitting]
    ]
    return cells, more


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """One page with time in it."""

    definition: PartitionDefinition
    rule: PartitionByTime
    clock: Clock
    period: Period
    unit: Unit
    segments: Sequence[str]
    has_segments: bool

    def exact_blocks(self, cells: Cells, slices: Mapping[str, SliceFact]) -> list[Block]:
        """Return one cell per partition."""
        if not cells:
            return []
        if self.has_segments:
            return [self._segment_block(title, list(group), slices)
                    for title, group in groupby(cells, self._segment_block_title)]  # fmt: skip
        # Local time is dear: each window is asked for it once.
        made = [self._started(window, keys[0][1], slices) for window, keys in cells]
        match self.unit:
            case "day":
                return _calendars(made)
            case "hour":
                return [_hours(title, list(group)) for title, group in groupby(made, _month_of)]
            case "minute":
                return [_minutes(title, list(group)) for title, group in groupby(made, _day_of)]
        return [_years(made)]

    def share_blocks(self, unit: CountsUnit, counts: Bucketed) -> list[Block]:
        """Return one cell per day, month or year, with the share of each state."""
        starts = list(self._starts(unit))
        expected = counts_starting(self.rule, [*starts, self.period.stop], self.clock)
        by_segment = {
            segment: [
                self._share(unit, start, (total, over), segment, counts.get((start, segment), {}))
                for start, (total, over) in zip(starts, expected, strict=True)
            ]
            for segment in self.segments
        }
        if self.has_segments:
            names = [_column_name(unit, start) for start in starts]
            rows = [Row(cells, self._label(text), text) for text, cells in by_segment.items()]
            return [Block(self.period.title, rows, names)]
        (cells,) = by_segment.values()
        dated = list(zip(starts, cells, strict=True))
        if unit == "day":
            by_month = groupby(dated, lambda pair: pair[0].replace(day=1))
            return [
                Block(_month_name(month), _weeks(list(group)), WEEKDAYS, address("month", month))
                for month, group in by_month
            ]
        rows = [
            Row([cell for _, cell in group], str(year))
            for year, group in groupby(dated, lambda pair: pair[0].year)
        ]
        return [Block("", [row for row in rows if any(row.cells)], MONTHS)]

    def _started(
        self, window: Interval, key: str, slices: Mapping[str, SliceFact]
    ) -> tuple[datetime, Cell]:
        start = window.local_start
        inside = ""
        if self.unit == "day":
            inside = str(start.day)
        elif self.unit == "long":
            inside = _long_label(start, window)
        return start, self._cell(window, key, slices, inside)

    def _cell(
        self, window: Interval, key: str, slices: Mapping[str, SliceFact], inside: str = ""
    ) -> Cell:
        look = look_in(slices, key)
        if look is MISSING and window.end > self.clock.now:
            look = NOT_YET_DUE
        return Cell(look, key, label_of(self.definition, key), inside, because_in(slices, key))

    def _label(self, segment: str) -> str:
        return segment_label(self.definition, segment)

    def _segment_block_title(self, cell: WindowKeys) -> str:
        start = cell[0].local_start
        match self.unit:
            case "hour" | "minute":
                return f"{start:%a} {start.day} {start:%b %Y}"
            case "day":
                return f"{start:%B %Y}"
        return self.period.title

    def _segment_block(self, title: str, cells: Cells, slices: Mapping[str, SliceFact]) -> Block:
        rows = [
            Row(
                [self._cell(window, keys[at][1], slices) for window, keys in cells],
                self._label(segment),
                segment,
            )
            for at, segment in enumerate(self.segments)
        ]
        return Block(title, rows, [_segment_column(window, self.unit) for window, _ in cells])

    def _starts(self, unit: CountsUnit) -> Iterator[date]:
        match unit:
            case "day":
                yield from self.period.days
            case "month":
                yield from self.period.months
            case "year":
                yield from (date(year, 1, 1) for year in self.period.years)

    def _share(
        self,
        unit: CountsUnit,
        start: date,
        expected: tuple[int, int],
        segment: str,
        counts: Mapping[str, int],
    ) -> ShareCell | None:
        total, over = expected
        if not total and not any(counts.values()):
            return None
        zoom: Zoom = {"day": "day", "month": "month", "year": "year"}[unit]  # type: ignore[assignment]
        name = {"day": start.isoformat(), "month": f"{start:%B %Y}", "year": str(start.year)}[unit]
        if self.has_segments:
            name = f"{Truncator(self._label(segment)).chars(_SEGMENT_IN_NAME)}, {name}"
        inside = str(start.day) if unit == "day" and not self.has_segments else ""
        return ShareCell(name, total, total - over, counts, address(zoom, start), inside)


def _calendars(cells: list[Started]) -> list[Block]:
    blocks = []
    for month, group in groupby(cells, lambda pair: pair[0].date().replace(day=1)):
        dated = [(start.date(), cell) for start, cell in group]
        title, href = _month_name(month), address("month", month)
        if len({day for day, _ in dated}) < len(dated):
            # Windows of odd lengths: two may start on one date, which a calendar has no room for.
            blocks.append(Block(title, [Row([cell for _, cell in dated])], (), href))
        else:
            blocks.append(Block(title, _weeks(dated), WEEKDAYS, href))
    return blocks


def _weeks(dated: Sequence[tuple[date, Cell | ShareCell | None]]) -> list[Row]:
    """Rows of seven, each weekday in its column."""
    by_day = dict(dated)
    first, last = dated[0][0], dated[-1][0]
    monday = first - timedelta(days=first.weekday())
    rows = []
    while monday <= last:
        rows.append(Row([by_day.get(monday + timedelta(days=n)) for n in range(7)]))
        monday += timedelta(days=7)
    return rows


def _hours(title: str, cells: list[Started]) -> Block:
    """Days as rows, each local hour in its column; the second pass of a fold takes one more."""
    rows = []
    for day, group in groupby(cells, lambda pair: pair[0].date()):
        row: list[Cell | None] = []
        extra, before = 0, -1
        for start, cell in group:
            extra += start.hour == before
            row.extend([None] * (start.hour + extra - len(row)))
            row.append(cell)
            before = start.hour
        rows.append(Row(row, f"{day.day} {WEEKDAYS[day.weekday()]}"))
    return Block(title, rows, [str(hour) if hour % 6 == 0 else "" for hour in range(24)])


def _minutes(title: str, cells: list[Started]) -> Block:
    rows = [
        Row([cell for _, cell in group], f"{hour:02}:00")
        for hour, group in groupby(cells, lambda pair: pair[0].hour)
    ]
    return Block(title, rows)


def _years(cells: list[Started]) -> Block:
    rows = [
        Row([cell for _, cell in group], str(year))
        for year, group in groupby(cells, lambda pair: pair[0].year)
    ]
    return Block("", rows)


def _month_of(pair: Started) -> str:
    return _month_name(pair[0])


def _month_name(day: date) -> str:
    return f"{MONTHS[day.month - 1]} {day.year}"


def _day_of(pair: Started) -> str:
    start = pair[0]
    return f"{start:%A} {start.day} {start:%B %Y}"


def _long_label(start: datetime, window: Interval) -> str:
    length = window.end - window.start
    if length < timedelta(days=27):
        return ""
    if "-Q" in window.label:
        return window.label[-2:]
    return MONTHS[start.month - 1] if length < timedelta(days=300) else str(start.year)


def _segment_column(window: Interval, unit: Unit) -> str:
    start = window.local_start
    match unit:
        case "minute":
            return f"{start:%H:%M}" if start.minute == 0 else ""
        case "hour":
            return str(start.hour) if start.hour % 6 == 0 else ""
        case "day":
            return str(start.day) if start.day % 5 == 0 or start.day == 1 else ""
    return f"{start.year}" if start.month == 1 else ""


def _column_name(unit: CountsUnit, start: date) -> str:
    match unit:
        case "day":
            return str(start.day) if start.day % 5 == 0 or start.day == 1 else ""
        case "month":
            return MONTHS[start.month - 1]
    return str(start.year)

"""Pages of the grid with time: calendars, hours by day, segments by time, shares of states."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby, islice
from typing import Literal

from django.utils.text import Truncator

from partitions_app.grid.cells import (
    AggregateCell,
    Block,
    Bucketed,
    Cell,
    PartitionFact,
    Row,
    Zoom,
    address,
)
from partitions_app.grid.lists import because_in, key_texts, look_in, segment_label
from partitions_app.grid.periods import Clock, Period, Unit, counts_starting, windows_starting
from partitions_app.labels import label_of
from partitions_app.state_badges import MISSING, NOT_YET_DUE
from slicewise import Interval, PartitionDefinition
from slicewise.partitions import TimeDefinition

Shape = Literal["calendar", "table", "list"]
CountsUnit = Literal["day", "month", "year"]
# A window of the page, with pairs of a segment and the key text of the segment in that window.
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
    """Return the cells (windows that start in the period, with keys) and the start of the next
    page.

    At most ``most`` cells are returned. The start is a local time, None where all windows fit.
    """
    time_definition = definition.time_dimension
    if time_definition is None:
        raise LookupError("a grid without time has no windows")
    candidates = windows_starting(time_definition, period.first, period.stop, clock)
    if starts_at:
        candidates = (
            window for window in candidates if window.local_start.replace(tzinfo=None) >= starts_at
        )
    fitting = max(most // len(segments), 1)
    windows = list(islice(candidates, fitting + 1))
    next_start = (
        windows[fitting].local_start.replace(tzinfo=None) if len(windows) > fitting else None
    )
    cells = [
        (window, tuple(zip(segments, key_texts(definition, window.text, segments), strict=True)))
        for window in windows[:fitting]
    ]
    return cells, next_start


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """One page of the grid with time."""

    definition: PartitionDefinition
    rule: TimeDefinition
    clock: Clock
    period: Period
    unit: Unit
    segments: Sequence[str]
    has_segments: bool

    def exact_blocks(self, cells: Cells, slices: Mapping[str, PartitionFact]) -> list[Block]:
        """Return blocks with one cell per partition."""
        if not cells:
            return []
        if self.has_segments:
            return [self._segment_block(title, list(group), slices)
                    for title, group in groupby(cells, self._segment_block_title)]  # fmt: skip
        # Local time is expensive: computed once per window.
        started_cells = [self._started(window, keys[0][1], slices) for window, keys in cells]
        match self.unit:
            case "day":
                return _month_calendars(started_cells)
            case "hour":
                return [
                    _hour_table(title, list(group))
                    for title, group in groupby(started_cells, _month_of)
                ]
            case "minute":
                return [
                    _minute_table(title, list(group))
                    for title, group in groupby(started_cells, _day_of)
                ]
        return [_year_table(started_cells)]

    def share_blocks(self, unit: CountsUnit, counts: Bucketed) -> list[Block]:
        """Return blocks with one cell per day, month or year, which has the share of each state."""
        starts = list(self._starts(unit))
        expected = counts_starting(self.rule, [*starts, self.period.stop], self.clock)
        by_segment = {
            segment: [
                self._share(unit, start, (total, ended), segment, counts.get((start, segment), {}))
                for start, (total, ended) in zip(starts, expected, strict=True)
            ]
            for segment in self.segments
        }
        if self.has_segments:
            names = [_column_name(unit, start) for start in starts]
            rows = [Row(cells, self._label(text), text) for text, cells in by_segment.items()]
            return [Block(self.period.title, rows, names)]
        (cells,) = by_segment.values()
        dated_cells = list(zip(starts, cells, strict=True))
        if unit == "day":
            by_month = groupby(dated_cells, lambda pair: pair[0].replace(day=1))
            return [
                Block(
                    _month_name(month), _week_rows(list(group)), WEEKDAYS, address("month", month)
                )
                for month, group in by_month
            ]
        rows = [
            Row([cell for _, cell in group], str(year))
            for year, group in groupby(dated_cells, lambda pair: pair[0].year)
        ]
        return [Block("", [row for row in rows if any(row.cells)], MONTHS)]

    def _started(
        self, window: Interval, key: str, slices: Mapping[str, PartitionFact]
    ) -> tuple[datetime, Cell]:
        start = window.local_start
        inside = ""
        if self.unit == "day":
            inside = str(start.day)
        elif self.unit == "long":
            inside = _long_label(start, window)
        return start, self._cell(window, key, slices, inside)

    def _cell(
        self, window: Interval, key: str, slices: Mapping[str, PartitionFact], inside: str = ""
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

    def _segment_block(
        self, title: str, cells: Cells, slices: Mapping[str, PartitionFact]
    ) -> Block:
        rows = [
            Row(
                [self._cell(window, keys[index][1], slices) for window, keys in cells],
                self._label(segment),
                segment,
            )
            for index, segment in enumerate(self.segments)
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
    ) -> AggregateCell | None:
        total, ended = expected
        if not total and not any(counts.values()):
            return None
        zoom: Zoom = {"day": "day", "month": "month", "year": "year"}[unit]  # type: ignore[assignment]
        name = {"day": start.isoformat(), "month": f"{start:%B %Y}", "year": str(start.year)}[unit]
        if self.has_segments:
            name = f"{Truncator(self._label(segment)).chars(_SEGMENT_IN_NAME)}, {name}"
        inside = str(start.day) if unit == "day" and not self.has_segments else ""
        return AggregateCell(name, total, total - ended, counts, address(zoom, start), inside)


def _month_calendars(cells: list[Started]) -> list[Block]:
    blocks = []
    for month, group in groupby(cells, lambda pair: pair[0].date().replace(day=1)):
        dated_cells = [(start.date(), cell) for start, cell in group]
        title, href = _month_name(month), address("month", month)
        if len({day for day, _ in dated_cells}) < len(dated_cells):
            # Windows of odd lengths: a calendar has no room for two windows that start on one date.
            blocks.append(Block(title, [Row([cell for _, cell in dated_cells])], (), href))
        else:
            blocks.append(Block(title, _week_rows(dated_cells), WEEKDAYS, href))
    return blocks


def _week_rows(dated_cells: Sequence[tuple[date, Cell | AggregateCell | None]]) -> list[Row]:
    """Return rows of seven cells, each weekday in a column of its own."""
    by_day = dict(dated_cells)
    first, last = dated_cells[0][0], dated_cells[-1][0]
    monday = first - timedelta(days=first.weekday())
    rows = []
    while monday <= last:
        rows.append(Row([by_day.get(monday + timedelta(days=n)) for n in range(7)]))
        monday += timedelta(days=7)
    return rows


def _hour_table(title: str, cells: list[Started]) -> Block:
    """Return days as rows, local hours as columns; the second pass of a fold adds a column."""
    rows = []
    for day, group in groupby(cells, lambda pair: pair[0].date()):
        row: list[Cell | None] = []
        fold_count, previous_hour = 0, -1
        for start, cell in group:
            fold_count += start.hour == previous_hour
            row.extend([None] * (start.hour + fold_count - len(row)))
            row.append(cell)
            previous_hour = start.hour
        rows.append(Row(row, f"{day.day} {WEEKDAYS[day.weekday()]}"))
    return Block(title, rows, [str(hour) if hour % 6 == 0 else "" for hour in range(24)])


def _minute_table(title: str, cells: list[Started]) -> Block:
    rows = [
        Row([cell for _, cell in group], f"{hour:02}:00")
        for hour, group in groupby(cells, lambda pair: pair[0].hour)
    ]
    return Block(title, rows)


def _year_table(cells: list[Started]) -> Block:
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

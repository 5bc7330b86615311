"""Pages of the grid with time: calendars, hours by day, segments by time, shares of states."""

from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import dropwhile, groupby, islice
from typing import Literal
from zoneinfo import ZoneInfo

from django.utils.text import Truncator

from partitions_app.grid.cells import (
    Block,
    Cell,
    PartitionFact,
    Row,
    Zoom,
    address,
)
from partitions_app.grid.extents import Expected, Extent
from partitions_app.grid.lists import because_in, key_texts, look_in, segment_label
from partitions_app.grid.periods import Clock, Period, Unit
from partitions_app.grid.share_cells import AggregateCell, Bucketed, ShareLooks
from partitions_app.grid.wall_clock import (
    WEEKDAYS,
    SegmentColumns,
    Started,
    hour_table,
    hours_of_day,
    minute_table,
)
from partitions_app.labels import label_of
from partitions_app.state_badges import MISSING, NOT_YET_DUE
from slicewise import Interval, PartitionDefinition

Shape = Literal["calendar", "table", "list"]
CountsUnit = Literal["day", "month", "year"]
# A window of the page, with pairs of a segment and the key text of the segment in that window.
WindowKeys = tuple[Interval, tuple[tuple[str, str], ...]]
Cells = list[WindowKeys]
# The cell of a window (None without time) and a key text, None where there is none.
CellOf = Callable[[Interval | None, str], Cell | None]
_SEGMENT_IN_NAME = 60
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


def share_starts(period: Period, unit: CountsUnit) -> Iterator[date]:
    """Yield the first day of each cell that one segment takes on a page of shares."""
    match unit:
        case "day":
            yield from period.days
        case "month":
            yield from period.months
        case "year":
            yield from (date(year, 1, 1) for year in period.years)


def exact_cells(
    extent: Extent,
    period: Period,
    segments: Sequence[str],
    most: int,
    starts_at: datetime | None,
) -> tuple[Cells, datetime | None]:
    """Return the cells (windows that start in the period, with keys) and the start of the next
    page.

    At most ``most`` cells are returned. Both starts are local times with an offset: the clock may
    show a time twice. The next start is None where all windows fit.
    """
    candidates = extent.windows(period)
    if starts_at:
        first_start = starts_at.astimezone(UTC)
        candidates = dropwhile(lambda window: window.start < first_start, candidates)
    fitting = max(most // len(segments), 1)
    windows = list(islice(candidates, fitting + 1))
    zone = ZoneInfo(extent.windows_definition.timezone)
    next_start = windows[fitting].start.astimezone(zone) if len(windows) > fitting else None
    key_texts_of = partial(key_texts, extent.definition, segments=segments)
    cells = [
        (window, tuple(zip(segments, key_texts_of(window.text), strict=True)))
        for window in windows[:fitting]
    ]
    return cells, next_start


def cells_of_facts(
    definition: PartitionDefinition | None, clock: Clock, partitions: Mapping[str, PartitionFact]
) -> CellOf:
    """Return the function that makes the cell of a partition of an asset, which may have no row."""

    def cell_of(window: Interval | None, key: str) -> Cell:
        look = look_in(partitions, key)
        if look is MISSING and window is not None and window.end > clock.now:
            look = NOT_YET_DUE
        return Cell(look, key, label_of(definition, key), because=because_in(partitions, key))

    return cell_of


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """One page of the grid with time."""

    extent: Extent
    period: Period
    unit: Unit
    segments: Sequence[str]
    has_segments: bool
    looks: ShareLooks

    def blocks_of(self, cells: Cells, cell_of: CellOf) -> list[Block]:
        """Return blocks with one cell per partition, which a function makes; the function may
        return None.
        """
        if not cells:
            return []
        if self.has_segments:
            return [self._segment_block(title, list(group), cell_of)
                    for title, group in groupby(cells, self._segment_block_title)]  # fmt: skip
        # Local time is expensive: computed once per window.
        started_cells = [
            started
            for window, keys in cells
            if (started := self._started(window, keys[0][1], cell_of)) is not None
        ]
        match self.unit:
            case "day":
                return _month_calendars(started_cells)
            case "hour":
                return [
                    hour_table(title, list(group), self._zone)
                    for title, group in groupby(started_cells, _month_of)
                ]
            case "minute":
                return [
                    minute_table(title, list(group))
                    for title, group in groupby(started_cells, _day_of)
                ]
        return [_year_table(started_cells)]

    def share_blocks(self, unit: CountsUnit, counts: Bucketed) -> list[Block]:
        """Return blocks with one cell per day, month or year, which has the share of each state."""
        starts = list(share_starts(self.period, unit))
        expected = self.extent.expected([*starts, self.period.stop])
        numbers: Sequence[Expected | None] = [None] * len(starts) if expected is None else expected
        by_segment = {
            segment: [
                self._share(unit, start, number, segment, counts.get((start, segment), {}))
                for start, number in zip(starts, numbers, strict=True)
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
            months = [(month, list(group)) for month, group in by_month]
            return [
                Block(_month_name(month), _week_rows(days), WEEKDAYS, address("month", month))
                for month, days in months
                if any(cell for _, cell in days)
            ]
        rows = [
            Row([cell for _, cell in group], str(year))
            for year, group in groupby(dated_cells, lambda pair: pair[0].year)
        ]
        return [Block("", [row for row in rows if any(row.cells)], MONTHS)]

    def _started(self, window: Interval, key: str, cell_of: CellOf) -> Started | None:
        cell, start = cell_of(window, key), window.local_start
        if cell is None:
            return None
        inside = ""
        if self.unit == "day":
            inside = str(start.day)
        elif self.unit == "long":
            inside = _long_label(start, window)
        return start, replace(cell, inside=inside)

    @property
    def _zone(self) -> ZoneInfo:
        return ZoneInfo(self.extent.windows_definition.timezone)

    def _label(self, segment: str) -> str:
        return segment_label(self.extent.definition, segment)

    def _segment_block_title(self, cell: WindowKeys) -> str:
        start = cell[0].local_start
        match self.unit:
            case "hour" | "minute":
                return f"{start:%a} {start.day} {start:%b %Y}"
            case "day":
                return f"{start:%B %Y}"
        return self.period.title

    def _segment_block(self, title: str, cells: Cells, cell_of: CellOf) -> Block:
        columns = self._segment_columns([window.local_start for window, _ in cells])
        rows = []
        for index, segment in enumerate(self.segments):
            row: list[Cell | None] = [None] * len(columns.heads)
            for column, (window, keys) in zip(columns.positions, cells, strict=True):
                row[column] = cell_of(window, keys[index][1])
            rows.append(Row(row, self._label(segment), segment, columns.absent_hours))
        return Block(title, rows, columns.heads, note=columns.note)

    def _segment_columns(self, starts: Sequence[datetime]) -> SegmentColumns:
        if self.unit == "hour":
            return hours_of_day(starts, self._zone)
        days = [start.day for start in starts]
        if self.unit == "day" and len(set(days)) == len(days):
            most_days = max(monthrange(start.year, start.month)[1] for start in starts)
            # As many columns for each month, so that the months of a page stand below each other.
            heads = [_day_head(day) if day <= most_days else "" for day in range(1, 32)]
            return SegmentColumns([day - 1 for day in days], heads)
        heads = [_segment_column(start, self.unit) for start in starts]
        return SegmentColumns(range(len(starts)), heads)

    def _share(
        self,
        unit: CountsUnit,
        start: date,
        expected: Expected | None,
        segment: str,
        counts: Mapping[str, int],
    ) -> AggregateCell | None:
        total, ended = expected or (sum(counts.values()),) * 2
        if not total and not any(counts.values()):
            return None
        zoom: Zoom = {"day": "day", "month": "month", "year": "year"}[unit]  # type: ignore[assignment]
        name = {"day": start.isoformat(), "month": f"{start:%B %Y}", "year": str(start.year)}[unit]
        if self.has_segments:
            name = f"{Truncator(self._label(segment)).chars(_SEGMENT_IN_NAME)}, {name}"
        inside = str(start.day) if unit == "day" and not self.has_segments else ""
        return AggregateCell(
            name, total, total - ended, counts, address(zoom, start), inside, start, self.looks
        )


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


def _segment_column(start: datetime, unit: Unit) -> str:
    match unit:
        case "minute":
            return f"{start:%H:%M}" if start.minute == 0 else ""
        case "day":
            return _day_head(start.day)
    return f"{start.year}" if start.month == 1 else ""


def _day_head(day: int) -> str:
    return str(day) if day % 5 == 0 or day == 1 else ""


def _column_name(unit: CountsUnit, start: date) -> str:
    match unit:
        case "day":
            return _day_head(start.day)
        case "month":
            return MONTHS[start.month - 1]
    return str(start.year)

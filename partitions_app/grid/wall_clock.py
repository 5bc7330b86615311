"""Columns by the clock on the wall, also on days on which the clock changes."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import groupby

from partitions_app.grid.cells import Block, Cell, Row

WEEKDAYS = ("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")
# A cell with the local time at which its window starts.
Started = tuple[datetime, Cell]
# An hour of the clock, and how many windows of the same day started in this hour before.
HourPass = tuple[int, int]
_HOURS: tuple[HourPass, ...] = tuple((hour, 0) for hour in range(24))


def hour_passes(starts: Sequence[datetime]) -> list[HourPass]:
    """Return the hour and the pass of each start, in order; a day may have an hour twice."""
    passes: list[HourPass] = []
    counts: dict[tuple[object, int], int] = {}
    for start in starts:
        hour = (start.date(), start.hour)
        passes.append((start.hour, counts.get(hour, 0)))
        counts[hour] = counts.get(hour, 0) + 1
    return passes


def hour_columns(passes: Sequence[HourPass]) -> list[HourPass]:
    """Return the columns of a table: the hours of a day, and an extra column for each second pass,
    right of the hour that comes before the pass.
    """
    columns = list(_HOURS)
    previous = _HOURS[0]
    for hour_pass in passes:
        if hour_pass not in columns:
            columns.insert(columns.index(previous) + 1, hour_pass)
        previous = hour_pass
    return columns


def hour_heads(columns: Sequence[HourPass]) -> list[str]:
    """Return the heads of the columns: every sixth hour, and each second pass."""
    return [_hour_head(hour, number) for hour, number in columns]


def _hour_head(hour: int, number: int) -> str:
    if number:
        return f"{hour}\N{MULTIPLICATION SIGN}{number + 1}"
    return str(hour) if hour % 6 == 0 else ""


def hour_table(title: str, cells: Sequence[Started]) -> Block:
    """Return days as rows, local hours as columns; a second pass of an hour adds a column."""
    passes = hour_passes([start for start, _ in cells])
    columns = hour_columns(passes)
    rows = []
    placed_cells = zip(passes, cells, strict=True)
    for day, group in groupby(placed_cells, lambda placed: placed[1][0].date()):
        by_pass = {hour_pass: cell for hour_pass, (_, cell) in group}
        row = [by_pass.get(column) for column in columns]
        rows.append(Row(row, f"{day.day} {WEEKDAYS[day.weekday()]}"))
    return Block(title, rows, hour_heads(columns))


def minute_table(title: str, cells: Sequence[Started]) -> Block:
    """Return hours as rows, minutes as columns; each pass of an hour is a row of its own."""
    groups = [(hour, list(group)) for hour, group in groupby(cells, lambda pair: _hour_of(pair[0]))]
    minutes_by_row = [sorted({start.minute for start, _ in group}) for _, group in groups]
    minutes: list[int] = max(minutes_by_row, key=len)
    fits = all(set(row_minutes) <= set(minutes) for row_minutes in minutes_by_row)
    hours = [hour for (hour, _), _ in groups]
    rows = []
    for (hour, offset), group in groups:
        by_minute = {start.minute: cell for start, cell in group}
        label = f"{hour:02}:00" + (f" {_offset_text(offset)}" if hours.count(hour) > 1 else "")
        # Windows of odd lengths have other minutes in each hour, and stand side by side.
        packed = [cell for _, cell in group]
        rows.append(Row([by_minute.get(minute) for minute in minutes] if fits else packed, label))
    return Block(title, rows, [_minute_head(minute, minutes) for minute in minutes] if fits else ())


def _minute_head(minute: int, minutes: Sequence[int]) -> str:
    return f":{minute:02}" if len(minutes) <= 12 or minute % 10 == 0 else ""


def _hour_of(start: datetime) -> tuple[int, timedelta]:
    return start.hour, start.utcoffset() or timedelta()


def _offset_text(offset: timedelta) -> str:
    minutes = abs(offset) // timedelta(minutes=1)
    sign = "-" if offset < timedelta() else "+"
    return f"{sign}{minutes // 60:02}:{minutes % 60:02}"

"""Columns by the clock on the wall, also on days on which the clock changes."""

from collections.abc import Container, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from typing import NamedTuple
from zoneinfo import ZoneInfo

from partitions_app.grid.cells import Block, Cell, Row

WEEKDAYS = ("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")
# A cell with the local time at which its window starts.
Started = tuple[datetime, Cell]
# An hour of the clock, and how many windows of the same day started in this hour before.
HourPass = tuple[int, int]
_ORDINALS = {2: "2nd", 3: "3rd"}
_HOURS: tuple[HourPass, ...] = tuple((hour, 0) for hour in range(24))


def _hour_passes(starts: Sequence[datetime]) -> list[HourPass]:
    """Return the hour and the pass of each start, in order; a day may have an hour twice."""
    passes: list[HourPass] = []
    counts: dict[tuple[object, int], int] = {}
    for start in starts:
        hour = (start.date(), start.hour)
        passes.append((start.hour, counts.get(hour, 0)))
        counts[hour] = counts.get(hour, 0) + 1
    return passes


def _hour_columns(passes: Sequence[HourPass]) -> list[HourPass]:
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


def _hour_heads(columns: Sequence[HourPass]) -> list[str]:
    """Return the heads of the columns: every sixth hour, and each second pass."""
    return [_hour_head(hour, number) for hour, number in columns]


def _hour_head(hour: int, number: int) -> str:
    if number:
        return f"{hour} ({_ORDINALS.get(number + 1, f'{number + 1}th')})"
    return str(hour) if hour % 6 == 0 else ""


def hour_table(title: str, cells: Sequence[Started], zone: ZoneInfo) -> Block:
    """Return days as rows, hours of the zone as columns; a second pass of an hour adds a column."""
    passes = _hour_passes([start for start, _ in cells])
    columns = _hour_columns(passes)
    rows, changes = [], []
    placed_cells = zip(passes, cells, strict=True)
    for day, group in groupby(placed_cells, lambda placed: placed[1][0].date()):
        by_pass = {hour_pass: cell for hour_pass, (_, cell) in group}
        row = [by_pass.get(column) for column in columns]
        absent_hours = _absent_hours(day, columns, by_pass, zone)
        rows.append(Row(row, f"{day.day} {WEEKDAYS[day.weekday()]}", absent_hours=absent_hours))
        changes += _changes(day, columns, by_pass, absent_hours)
    return Block(title, rows, _hour_heads(columns), note=" ".join(changes))


class SegmentColumns(NamedTuple):
    """The columns of a table with segments as rows: the column of each window, the heads of all
    columns, the columns of hours that the clock does not show, and a note for people.
    """

    positions: Sequence[int]
    heads: Sequence[str]
    absent_hours: frozenset[int] = frozenset()
    note: str = ""


def hours_of_day(starts: Sequence[datetime], zone: ZoneInfo) -> SegmentColumns:
    """Return the columns for windows of one day, given the local times at which these start."""
    passes = _hour_passes(starts)
    columns = _hour_columns(passes)
    day = starts[0].date()
    absent_hours = _absent_hours(day, columns, passes, zone)
    return SegmentColumns(
        [columns.index(hour_pass) for hour_pass in passes],
        _hour_heads(columns),
        absent_hours,
        " ".join(_changes(day, columns, passes, absent_hours)),
    )


def _absent_hours(
    day: date, columns: Sequence[HourPass], with_window: Container[HourPass], zone: ZoneInfo
) -> frozenset[int]:
    """Return the columns of hours that the clock does not show on a day. The clock shows each hour
    in which a window starts: most hours need no look at the zone.
    """
    return frozenset(
        index
        for index, column in enumerate(columns)
        if column not in with_window and not _is_shown(day, column, zone)
    )


def _is_shown(day: date, column: HourPass, zone: ZoneInfo) -> bool:
    """Return whether the clock shows an hour on a day as often as the column says."""
    hour, number = column
    start = datetime(day.year, day.month, day.day, hour, fold=min(number, 1), tzinfo=zone)
    # An hour that the clock skips comes back as another hour.
    is_real = start.astimezone(UTC).astimezone(zone).hour == hour
    return is_real and (not number or start.utcoffset() != start.replace(fold=0).utcoffset())


def _changes(
    day: date,
    columns: Sequence[HourPass],
    with_window: Container[HourPass],
    absent_hours: Container[int],
) -> list[str]:
    """Return a sentence for each hour that the clock shows again on a day, or does not show."""
    sentences = []
    for index, (hour, number) in enumerate(columns):
        if number and (hour, number) in with_window:
            sentences.append(
                f"{_hour_head(hour, number)}: on {day} clocks go back, and the hour from"
                f" {hour:02}:00 comes again."
            )
        elif not number and index in absent_hours:
            sentences.append(f"On {day} clocks go forward: the day has no hour from {hour:02}:00.")
    return sentences


def minute_table(title: str, cells: Sequence[Started]) -> Block:
    """Return hours as rows, minutes as columns; each pass of an hour is a row of its own."""
    groups = [(hour, list(group)) for hour, group in groupby(cells, lambda pair: _hour_of(pair[0]))]
    minutes_by_row = [sorted(start.minute for start, _ in group) for _, group in groups]
    most_minutes: list[int] = max(minutes_by_row, key=len)
    minutes = sorted(set(most_minutes))
    # Windows shorter than a minute share a minute.
    fits = all(
        set(row_minutes) <= set(minutes) and len(set(row_minutes)) == len(row_minutes)
        for row_minutes in minutes_by_row
    )
    hours = [hour for (hour, _), _ in groups]
    rows = []
    for (hour, offset), group in groups:
        by_minute = {start.minute: cell for start, cell in group}
        label = f"{hour:02}:00" + (f" {offset_text(offset)}" if hours.count(hour) > 1 else "")
        # Windows of odd lengths have other minutes in each hour, and stand side by side.
        packed = [cell for _, cell in group]
        rows.append(Row([by_minute.get(minute) for minute in minutes] if fits else packed, label))
    return Block(title, rows, [_minute_head(minute, minutes) for minute in minutes] if fits else ())


def _minute_head(minute: int, minutes: Sequence[int]) -> str:
    return f":{minute:02}" if len(minutes) <= 12 or minute % 10 == 0 else ""


def _hour_of(start: datetime) -> tuple[int, timedelta]:
    return start.hour, start.utcoffset() or timedelta()


def offset_text(offset: timedelta) -> str:
    """Return an offset from UTC: ``+02:00``."""
    minutes = abs(offset) // timedelta(minutes=1)
    sign = "-" if offset < timedelta() else "+"
    return f"{sign}{minutes // 60:02}:{minutes % 60:02}"

"""Time: zones, cadences, ticks, text of times. docs/internals/calendar.md has the rules."""

from slicewise.calendar.time_schedules import TimeSchedule
from slicewise.calendar.time_text import read_time
from slicewise.calendar.zones import to_datetime, to_instant, zone

__all__ = ["TimeSchedule", "read_time", "to_datetime", "to_instant", "zone"]

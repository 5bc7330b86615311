"""The ticks of schedules by time, from the columns of schedules."""

from collections.abc import Mapping
from typing import Any

from slicewise.calendar import TimeSchedule


def time_rule(schedule_rule: Mapping[str, Any]) -> TimeSchedule:
    """Return the ticks of a schedule by time, from the value of `Schedule.rule`."""
    return TimeSchedule.from_json(
        schedule_rule["schedule"],
        timezone=schedule_rule.get("timezone"),
        start=schedule_rule.get("start"),
        end=schedule_rule.get("end"),
    )

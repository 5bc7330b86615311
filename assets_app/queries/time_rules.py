"""The ticks of schedules by time, from the columns of schedules."""

from collections.abc import Mapping
from typing import Any

from slicewise.calendar import TimeSchedule
from slicewise.declaring import time_terms


def time_rule(schedule_rule: Mapping[str, Any]) -> TimeSchedule:
    """Return the ticks of a schedule by time, from the value of `Schedule.rule`."""
    return TimeSchedule.from_json(
        schedule_rule["schedule"],
        timezone=schedule_rule.get("timezone"),
        start=schedule_rule.get("start"),
        end=schedule_rule.get("end"),
    )


def has_times(schedule_rule: Mapping[str, Any] | None) -> bool:
    """Return whether a schedule is a time, or joins times to assets."""
    return schedule_rule is not None and bool(time_terms(schedule_rule["schedule"]))

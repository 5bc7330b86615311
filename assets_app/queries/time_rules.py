"""The ticks of schedules by time, from the columns of schedules."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from slicewise.calendar import TimeSchedule
from slicewise.declaring import is_time, time_terms


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


def missed_until(schedule_rule: Mapping[str, Any] | None, moment: datetime) -> datetime | None:
    """Return until when the windows are missed that end in a pause, which ends at a moment: until
    the moment, since no later tick queues these windows; but until the last tick of a schedule by
    time that has ended. None without such a tick, and without times.
    """
    if schedule_rule is None or not has_times(schedule_rule):
        return None
    if not is_time(schedule_rule["schedule"]):
        return moment
    ticks = time_rule(schedule_rule)
    return moment if ticks.next_after(moment) is not None else ticks.last_until(moment)

"""The ticks of the times in a schedule."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from assets_app.queries.after_windows import moments_after
from assets_app.queries.time_rules import time_rule
from slicewise.calendar import TimeSchedule
from slicewise.declaring import is_after, time_terms

_MOMENT = timedelta(microseconds=1)


def term_rules(schedule_rule: Mapping[str, Any]) -> Mapping[str, TimeSchedule]:
    """Return the ticks of each time in a schedule, by `term_text`; empty without times. The ticks
    of `After` are so long after the ends of windows.
    """
    return _term_rules(json.dumps(schedule_rule, sort_keys=True))


def term_text(term: Mapping[str, Any]) -> str:
    """Return the text that names a time of a schedule."""
    return json.dumps(term, sort_keys=True)


def next_tick(schedule_rule: Mapping[str, Any], after: datetime) -> datetime | None:
    """Return the next tick of any time in a schedule; None where there is none."""
    ticks = (term.next_after(after) for term in term_rules(schedule_rule).values())
    return min((tick for tick in ticks if tick is not None), default=None)


def is_tick(schedule_rule: Mapping[str, Any], moment: datetime) -> bool:
    """Return whether a moment is a tick of any time in a schedule."""
    return next_tick(schedule_rule, moment - _MOMENT) == moment


@lru_cache(maxsize=1024)
def _term_rules(text: str) -> Mapping[str, TimeSchedule]:
    schedule_rule = json.loads(text)
    return {
        term_text(term): _ticks_of(term, schedule_rule)
        for term in time_terms(schedule_rule["schedule"])
    }


def _ticks_of(term: Mapping[str, Any], schedule_rule: Mapping[str, Any]) -> TimeSchedule:
    if is_after(term):
        return moments_after(term, schedule_rule)
    timezone = term.get("timezone") or schedule_rule.get("timezone")
    return time_rule({**schedule_rule, "schedule": term, "timezone": timezone})

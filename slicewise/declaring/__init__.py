"""Declarations of assets: the decorators, their options, schedules, and the registry."""

from slicewise.declaring.option_checks import LONGEST_RETRY_DELAY, NAME_LIMIT, PRIORITY_LIMIT
from slicewise.declaring.pairing import pairing_notes
from slicewise.declaring.schedules import (
    cycle_from,
    evaluate_schedule,
    is_read_in_zone,
    is_time,
    schedule_names,
    schedule_text,
    time_terms,
)

__all__ = [
    "LONGEST_RETRY_DELAY",
    "NAME_LIMIT",
    "PRIORITY_LIMIT",
    "cycle_from",
    "evaluate_schedule",
    "is_read_in_zone",
    "is_time",
    "pairing_notes",
    "schedule_names",
    "schedule_text",
    "time_terms",
]

"""Declarations of assets: the decorators, their options, schedules, and the registry."""

from slicewise.declaring.alerts import LONGEST_GATHERING
from slicewise.declaring.freshness import Freshness
from slicewise.declaring.option_checks import LONGEST_RETRY_DELAY, NAME_LIMIT, PRIORITY_LIMIT
from slicewise.declaring.pairing import pairing_notes
from slicewise.declaring.schedules import (
    cycle_from,
    evaluate_schedule,
    fresh_names,
    is_after,
    is_read_in_zone,
    is_time,
    schedule_names,
    schedule_terms,
    schedule_text,
    time_terms,
)
from slicewise.declaring.specs import ExternalSpec, OutletSpec, ProducerSpec, outlet_names
from slicewise.declaring.unused_options import unused_options

__all__ = [
    "LONGEST_GATHERING",
    "LONGEST_RETRY_DELAY",
    "NAME_LIMIT",
    "PRIORITY_LIMIT",
    "ExternalSpec",
    "Freshness",
    "OutletSpec",
    "ProducerSpec",
    "cycle_from",
    "evaluate_schedule",
    "fresh_names",
    "is_after",
    "is_read_in_zone",
    "is_time",
    "outlet_names",
    "pairing_notes",
    "schedule_names",
    "schedule_terms",
    "schedule_text",
    "time_terms",
    "unused_options",
]

"""The windows that a term `After` counts from, in the rule of a schedule."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from slicewise import PartitionDefinition
from slicewise.calendar import TimeSchedule
from slicewise.declaring import ProducerSpec, is_after, time_terms
from slicewise.partitions import ticks_after_windows


def moments_after(term: Mapping[str, Any], schedule_rule: Mapping[str, Any]) -> TimeSchedule:
    """Return the moments of a term `After`, one for each window of the rule."""
    definition = PartitionDefinition.from_json(dict(schedule_rule["windows"]))
    return ticks_after_windows(definition, timedelta(seconds=term["seconds"]))


def windows_of(spec: ProducerSpec) -> dict[str, Any]:
    """Return the definition of the windows that a term `After` counts from, for the rule; empty for
    a schedule without such a term.
    """
    if not any(map(is_after, time_terms(spec.schedule))) or spec.partition is None:
        return {}
    windows = PartitionDefinition.from_json(dict(spec.partition)).time_dimension
    return {} if windows is None else {"windows": windows.to_json()}

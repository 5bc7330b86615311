"""Warnings about options that have no effect with the other options.

Such a declaration works. Options that bound or choose the partitions of a run would mislead, and
are refused in `option_pairs`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from slicewise.declaring.option_checks import LONGEST_RETRY_DELAY
from slicewise.declaring.options import DEFAULT_RETRY_DELAY
from slicewise.declaring.schedules import time_terms
from slicewise.partitions.definition import PartitionDefinition


def unused_options(producer: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each option of a declared function that has no effect.

    ``producer`` is an entry of ``producers`` in the result of `load_bundle`.
    """
    spec = producer["partition"]
    is_partitioned = spec is not None
    if producer["retries"] == 0 and producer["retry_delay"] != DEFAULT_RETRY_DELAY.total_seconds():
        yield "retry_delay has no effect: retries is 0"
    if producer["retries"] and producer["retry_delay"] > LONGEST_RETRY_DELAY.total_seconds():
        yield "retry_delay acts as an hour, the longest pause between two attempts"
    if not is_partitioned and producer["strategy"] != "partition":
        yield f"strategy={producer['strategy']!r} has no effect: the asset is not partitioned"
    if producer["on_partial"] == "publish" and (
        not is_partitioned or producer["strategy"] == "partition"
    ):
        yield 'on_partial="publish" has no effect: no run materializes more than one partition'
    if not is_partitioned and producer["max_active_runs"] is not None:
        yield "max_active_runs has no effect: an asset that is not partitioned has one active run"
    if producer["paused"] and producer["schedule"] is None:
        yield "paused=True has no effect: the asset has no schedule"
    if not is_partitioned and producer["outside"] == "drop":
        yield 'outside="drop" has no effect: the asset is not partitioned'
    if producer["write_mode"] != "replace" and not any(
        outlet["canonical_uri"] for outlet in producer["outlets"]
    ):
        yield f"write_mode={producer['write_mode']!r} has no effect: the asset has no uri"
    if producer["timezone"] != _zone_of(spec) and not time_terms(producer["schedule"]):
        yield f"timezone={producer['timezone']!r} has no effect: no schedule by time"


def _zone_of(spec: Mapping[str, Any] | None) -> str:
    """Return the time zone of an asset that declares none itself."""
    definition = None if spec is None else PartitionDefinition.from_json(dict(spec))
    time = None if definition is None else definition.time_dimension
    return "UTC" if time is None else time.timezone

"""The options of an asset's function as JSON, which servers store; times are resolved."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from slicewise.declaring.options import RunOptions
from slicewise.declaring.schedules import schedule_json
from slicewise.declaring.timing import Timing
from slicewise.partitions.definition import PartitionDefinition
from slicewise.texts.memory_sizes import memory_bytes


def options_json(options: RunOptions, timing: Timing) -> dict[str, Any]:
    """Return the options of a producer that the server needs, as JSON; times are resolved."""
    return {
        "partition": partition_json(timing.partition),
        "schedule": schedule_json(options.schedule),
        "timezone": timing.timezone,
        "start_date": timing.start.isoformat() if timing.start else None,
        "end_date": timing.end.isoformat() if timing.end else None,
        "strategy": options.strategy,
        "refresh": options.refresh,
        "pending": options.pending,
        "write_mode": options.write_mode,
        "group": options.group,
        "owners": list(options.owners),
        "tags": list(options.tags),
        "retries": options.retries,
        "retry_delay": _seconds(options.retry_delay),
        "timeout": None if options.timeout is None else _seconds(options.timeout),
        # No key if None, as in definitions from before the option: a new key makes a new version.
        **({} if options.memory is None else {"memory": memory_bytes(options.memory)}),
        "params": dict(options.params),
        "priority": options.priority,
        "max_active_runs": options.max_active_runs,
        "depends_on_past": options.depends_on_past,
        "engine": options.engine,
        "spark_conf": dict(options.spark_conf),
        "paused": options.paused,
        "on_partial": options.on_partial,
        "outside": options.outside,
        "on_success": _function_name(options.on_success),
        "on_failure": _function_name(options.on_failure),
    }


def partition_json(partition: PartitionDefinition | None) -> dict[str, Any] | None:
    """Return a partition definition as JSON, or None for None."""
    return None if partition is None else partition.to_json()


def _seconds(span: timedelta | float) -> float:
    return span.total_seconds() if isinstance(span, timedelta) else float(span)


def _function_name(function: Callable[..., Any] | None) -> str | None:
    if function is None:
        return None
    return str(getattr(function, "__qualname__", type(function).__qualname__))

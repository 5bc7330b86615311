"""The options of an asset's function, written once: fields, checks and JSON."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

from slicewise.definitions import PartitionDefinition
from slicewise.schedules import Schedule, schedule_json

NAME_LIMIT = 250
RESERVED_NAMES = ("self", "context", "spark")
DEFAULT_RETRY_DELAY = timedelta(seconds=30)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How and when an asset's function runs. Spans are timedeltas, or numbers of seconds."""

    schedule: Schedule = None
    timezone: str | None = None
    partition: PartitionDefinition | Literal["auto"] | None = None
    start_date: datetime | None = None
    end_date: datetime | None = None
    upstream: Mapping[Any, Any] = field(default_factory=dict)
    strategy: Literal["partition", "range"] | int = "partition"
    refresh: int = 0
    pending: Literal["all", "latest"] = "all"
    write_mode: Literal["replace", "append", "version"] = "replace"
    inlet_validations: Mapping[Any, Any] = field(default_factory=dict)
    outlet_validations: Sequence[Any] = ()
    group: str | None = None
    owners: Sequence[str] = ()
    tags: Sequence[str] = ()
    description: str | None = None
    retries: int = 0
    retry_delay: timedelta | float = DEFAULT_RETRY_DELAY
    timeout: timedelta | float | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    priority: int = 0
    max_active_runs: int | None = None
    depends_on_past: bool = False
    engine: Literal["connect", "submit"] = "connect"
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    paused: bool = False
    on_partial: Literal["discard", "publish"] = "discard"
    on_success: Callable[..., Any] | None = None
    on_failure: Callable[..., Any] | None = None


def options_json(options: RunOptions) -> dict[str, Any]:
    """What the server needs to know of a producer's options, as JSON."""
    return {
        "partition": partition_json(options.partition),
        "schedule": schedule_json(options.schedule),
        "timezone": options.timezone,
        "start_date": options.start_date.isoformat() if options.start_date else None,
        "end_date": options.end_date.isoformat() if options.end_date else None,
        "mappings": {
            _asset_name(asset): mapping.to_json() for asset, mapping in options.upstream.items()
        },
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
        "params": dict(options.params),
        "priority": options.priority,
        "max_active_runs": options.max_active_runs,
        "engine": options.engine,
        "spark_conf": dict(options.spark_conf),
        "paused": options.paused,
    }


def check_options(options: RunOptions) -> None:
    """Raises ValueError with a sentence for the first option that says what cannot be."""
    _check_partition(options.partition)
    schedule_json(options.schedule)
    if options.timezone is not None:
        _check_zone(options.timezone)
    _check_dates(options.start_date, options.end_date)
    _check_strategy(options.strategy)
    _check_counts(options)
    _check_texts(options)
    _check_params(options.params)
    _refuse_what_nothing_acts_on(options)


def check_name(name: object) -> None:
    """Raises ValueError for what cannot be the name of an asset."""
    if not isinstance(name, str) or not name.strip():
        raise ValueError("the name of an asset is a text that is not blank")
    if len(name) > NAME_LIMIT:
        raise ValueError(f"the name of an asset has at most {NAME_LIMIT} characters")
    if not name.isprintable() or name != name.strip():
        raise ValueError("the name of an asset has no control characters and no space around it")
    if name in RESERVED_NAMES:
        raise ValueError(
            f"{name!r} is a parameter with a meaning of its own ({', '.join(RESERVED_NAMES)});"
            " give the asset another name"
        )


def partition_json(partition: PartitionDefinition | str | None) -> dict[str, Any] | None:
    """A partition definition, or none, as JSON."""
    return partition.to_json() if isinstance(partition, PartitionDefinition) else None


def _asset_name(asset: Any) -> str:
    return asset if isinstance(asset, str) else str(asset.name)


def _seconds(span: timedelta | float) -> float:
    return span.total_seconds() if isinstance(span, timedelta) else float(span)


def _check_partition(partition: object) -> None:
    if partition is None or isinstance(partition, PartitionDefinition):
        return
    if partition == "auto":
        raise ValueError('partition="auto" is not yet supported; write a partition definition')
    if isinstance(partition, str):
        raise ValueError(
            f"partition={partition!r} is no partition definition;"
            f" write partition=PartitionByInterval({partition!r})"
        )
    raise ValueError(f"partition is a partition definition or none, not {type(partition).__name__}")


def _check_zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"unknown time zone {name!r}; write one like 'Europe/Berlin'") from None


def _check_dates(start: datetime | None, end: datetime | None) -> None:
    for name, value in (("start_date", start), ("end_date", end)):
        if value is not None and not isinstance(value, datetime):
            raise ValueError(f"{name} is a datetime, not {type(value).__name__}")
    if start is None or end is None:
        return
    if (start.tzinfo is None) != (end.tzinfo is None):
        raise ValueError("start_date and end_date both have a time zone, or neither has one")
    if end < start:
        raise ValueError(f"end_date {end} is before start_date {start}")


def _check_strategy(strategy: object) -> None:
    if strategy in ("partition", "range"):
        return
    if isinstance(strategy, bool) or not isinstance(strategy, int) or strategy < 1:
        raise ValueError(f'strategy is "partition", "range" or a number from 1, not {strategy!r}')


def _check_counts(options: RunOptions) -> None:
    for name, least in (("retries", 0), ("max_active_runs", 1), ("refresh", 0)):
        value = getattr(options, name)
        if value is None and name == "max_active_runs":
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{name} is a whole number from {least}, not {value!r}")
    if isinstance(options.priority, bool) or not isinstance(options.priority, int):
        raise ValueError(f"priority is a whole number, not {options.priority!r}")
    for name in ("retry_delay", "timeout"):
        value = getattr(options, name)
        if value is not None and not _is_span(value):
            raise ValueError(f"{name} is a timedelta or a number of seconds, not {value!r}")


def _is_span(value: object) -> bool:
    if isinstance(value, timedelta):
        return value >= timedelta(0)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(float(str(value))) and float(str(value)) >= 0


def _check_texts(options: RunOptions) -> None:
    for name in ("owners", "tags"):
        value = getattr(options, name)
        if isinstance(value, str) or not all(isinstance(item, str) for item in value):
            raise ValueError(f"{name} is a list of texts, not {value!r}")
    if not all(isinstance(v, str) for pair in options.spark_conf.items() for v in pair):
        raise ValueError("spark_conf maps texts to texts")


def _check_params(params: Mapping[str, Any]) -> None:
    try:
        json.dumps(dict(params), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"params hold what JSON can hold: {error}") from None
    if not all(isinstance(name, str) for name in params):
        raise ValueError("the names of params are texts")


def _refuse_what_nothing_acts_on(options: RunOptions) -> None:
    """Options that people would rely on, for their data or to be told, if they were taken."""
    asked = {
        "inlet_validations": bool(options.inlet_validations),
        "outlet_validations": bool(options.outlet_validations),
        f"write_mode={options.write_mode!r}": options.write_mode != "replace",
        f"engine={options.engine!r}": options.engine != "connect",
        f"on_partial={options.on_partial!r}": options.on_partial != "discard",
        f"refresh={options.refresh!r}": options.refresh != 0,
        f"pending={options.pending!r}": options.pending != "all",
        "depends_on_past": options.depends_on_past,
        "on_success": options.on_success is not None,
        "on_failure": options.on_failure is not None,
    }
    for name, is_asked in asked.items():
        if is_asked:
            raise ValueError(f"{name} is not yet supported")

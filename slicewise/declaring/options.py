"""The options of an asset's function, defined once; `specs` has the options as JSON."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Literal

from slicewise.declaring.alerts import Alert
from slicewise.declaring.freshness import Freshness
from slicewise.declaring.iterables import read_once
from slicewise.declaring.schedules import Schedule
from slicewise.io.base import WriteMode
from slicewise.mapping.partition_mapping import PartitionMapping
from slicewise.partitions.definition import PartitionDefinition
from slicewise.validations import AssetValidation

DEFAULT_RETRY_DELAY = timedelta(seconds=30)

Partition = PartitionDefinition | Literal["auto"] | None
When = datetime | date | str | None
Validations = AssetValidation | Sequence[AssetValidation]
Pending = Literal["all", "latest"]
_READ_ONCE = {
    *("alerts", "columns", "owners", "tags"),
    *("inlet_validations", "outlet_validations", "outlets"),
}
Engine = Literal["connect", "submit"]
OnPartial = Literal["discard", "publish"]
Outside = Literal["error", "drop"]
Strategy = Literal["partition", "range"] | int


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How and when an asset's function runs. Spans are timedeltas, or numbers of seconds."""

    schedule: Schedule = None
    timezone: str | None = None
    partition: Partition = None
    start_date: When = None
    end_date: When = None
    inlets: Mapping[str, Any] = field(default_factory=dict)
    upstream: Mapping[Any, PartitionMapping] = field(default_factory=dict)
    strategy: Strategy = "partition"
    refresh: int = 0
    pending: Pending = "all"
    write_mode: WriteMode = "replace"
    inlet_validations: Mapping[Any, Validations] | Validations = ()
    outlet_validations: Validations = ()
    group: str | None = None
    owners: Iterable[str] = ()
    tags: Iterable[str] = ()
    description: str | None = None
    alerts: Iterable[Alert] | Alert = ()
    retries: int = 0
    retry_delay: timedelta | float = DEFAULT_RETRY_DELAY
    timeout: timedelta | float | None = None
    memory: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    priority: int = 0
    max_active_runs: int | None = None
    depends_on_past: bool = False
    engine: Engine = "connect"
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    paused: bool = False
    on_partial: OnPartial = "discard"
    outside: Outside = "error"
    on_success: Callable[..., Any] | None = None
    on_failure: Callable[..., Any] | None = None
    setup: Callable[..., Any] | None = None
    teardown: Callable[..., Any] | None = None
    freshness: Freshness | None = None

    def __post_init__(self) -> None:
        # A generator would be empty at its second reading, and other code may change a dict.
        fields = vars(self)
        for name in _READ_ONCE & fields.keys():
            object.__setattr__(self, name, read_once(fields[name]))
        for name in ("params", "spark_conf"):
            object.__setattr__(self, name, _copied(fields[name]))


def with_options(options: RunOptions, **changes: Any) -> RunOptions:
    """Return a copy of options with some values changed. Nothing is checked again."""
    changed = copy(options)
    for name, value in changes.items():
        object.__setattr__(changed, name, value)
    return changed


def hooks_of(options: RunOptions) -> dict[str, Callable[..., Any]]:
    """Return the functions that are called after a run, by the name of the option."""
    hooks = {"on_success": options.on_success, "on_failure": options.on_failure}
    return {name: hook for name, hook in hooks.items() if hook is not None}


def _copied(value: Any) -> Any:
    """Return a copy of a value; the value itself if it cannot be copied, for the later checks."""
    try:
        return deepcopy(value)
    except Exception:
        return value

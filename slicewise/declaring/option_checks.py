"""Checks of options' values. Each check raises a DefinitionError that names the valid values."""

import json
import math
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, get_args

from slicewise.declaring.options import Engine, OnPartial, Outside, Pending, RunOptions
from slicewise.errors import DefinitionError
from slicewise.io.base import WriteMode
from slicewise.texts.memory_sizes import memory_bytes

NAME_LIMIT = 250
_TEXT_LIMITS = {"group": 200, "kind": 100}
PRIORITY_LIMIT = 1_000
RETRIES_LIMIT = 100
MAX_ACTIVE_RUNS_LIMIT = 1_000_000
STRATEGY_LIMIT = 1_000_000
# The longest pause between two attempts, however often the pause was doubled.
LONGEST_RETRY_DELAY = timedelta(hours=1)
RESERVED_NAMES = ("self", "context", "spark")
Columns = Iterable[str] | Mapping[str, str | None] | None

_CHOICES = {
    "pending": get_args(Pending),
    "write_mode": get_args(WriteMode),
    "engine": get_args(Engine),
    "on_partial": get_args(OnPartial),
    "outside": get_args(Outside),
}


def check_options(options: RunOptions) -> None:
    """Check each option by itself; options of time and of upstream assets are checked elsewhere."""
    _check_choices(options)
    _check_strategy(options.strategy)
    _check_counts(options)
    _check_spans(options)
    _check_texts(options)
    _check_params(options.params)
    _check_functions(options)


def check_name(name: object) -> None:
    """Raise DefinitionError for a value that cannot be the name of an asset."""
    if not isinstance(name, str) or not name.strip():
        raise DefinitionError("the name of an asset is a text that is not blank")
    if len(name) > NAME_LIMIT:
        raise DefinitionError(f"the name of an asset has at most {NAME_LIMIT} characters")
    if not name.isprintable() or name != name.strip():
        raise DefinitionError(
            "the name of an asset has no control characters and no space at either end"
        )
    if "/" in name or name in (".", ".."):  # the address of the asset's page contains the name
        raise DefinitionError('the name of an asset has no / in it, and is not "." or ".."')
    if name in RESERVED_NAMES:
        raise DefinitionError(
            f"{name!r} is the name of a reserved parameter ({', '.join(RESERVED_NAMES)});"
            " give the asset another name"
        )


def columns_json(columns: Columns) -> list[dict[str, str | None]] | None:
    """Return declared columns as ``[{"name": ..., "type": ...}]``. Raises DefinitionError."""
    if columns is None:
        return None
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise DefinitionError(
            f"columns is a list of names, or maps names to types, not {columns!r}"
        )
    types: Mapping[str, object] = columns if isinstance(columns, Mapping) else {}
    names: set[str] = set()
    columns_with_types: list[dict[str, str | None]] = []
    for name in columns:
        if not isinstance(name, str) or not name.strip():
            raise DefinitionError(f"columns: the name of a column is a text, not {name!r}")
        if name in names:
            raise DefinitionError(f"columns: {name!r} is named twice")
        type_ = types.get(name)
        if type_ is not None and (not isinstance(type_, str) or not type_.strip()):
            raise DefinitionError(f"columns: the type of {name!r} is a text, not {type_!r}")
        names.add(name)
        columns_with_types.append({"name": name, "type": type_})
    return columns_with_types


def check_text(name: str, value: object) -> None:
    """Raise DefinitionError for a value that is neither a text nor None, and for a group or kind
    that a server cannot store.
    """
    if value is None:
        return
    if not isinstance(value, str):
        raise DefinitionError(f"{name} is a text, not {value!r}")
    limit = _TEXT_LIMITS.get(name)
    if limit is not None and len(value) > limit:
        raise DefinitionError(f"{name} has at most {limit} characters")
    if limit is not None and not value.isprintable():
        raise DefinitionError(f"{name} has no control characters")


def check_texts(name: str, value: object) -> list[str]:
    """Return a list of texts that are not blank. Raises DefinitionError for anything else."""
    is_list = isinstance(value, Iterable) and not isinstance(value, str | Mapping)
    texts = list(value) if isinstance(value, Iterable) else []
    if not is_list or not all(isinstance(text, str) and text.strip() for text in texts):
        raise DefinitionError(f"{name} is a list of texts, not {value!r}")
    return texts


def _check_choices(options: RunOptions) -> None:
    for name, allowed in _CHOICES.items():
        value = getattr(options, name)
        if value not in allowed:
            shown = " or ".join(f'"{choice}"' for choice in allowed)
            raise DefinitionError(f"{name} is {shown}, not {value!r}")
    for name in ("depends_on_past", "paused"):
        value = getattr(options, name)
        if not isinstance(value, bool):
            raise DefinitionError(f"{name} is True or False, not {value!r}")


def _check_strategy(strategy: object) -> None:
    if isinstance(strategy, str) and strategy in ("partition", "range"):
        return
    if isinstance(strategy, bool) or not isinstance(strategy, int) or strategy < 1:
        raise DefinitionError(
            f'strategy is "partition", "range" or a number from 1, not {strategy!r}'
        )
    if strategy > STRATEGY_LIMIT:
        raise DefinitionError(
            f'strategy is at most {STRATEGY_LIMIT:,} partitions in a run, not {strategy:,}; "range"'
            " puts all partitions into one run"
        )


def _check_counts(options: RunOptions) -> None:
    for name, least in (("retries", 0), ("max_active_runs", 1), ("refresh", 0)):
        value = getattr(options, name)
        if value is None and name == "max_active_runs":
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise DefinitionError(f"{name} is a whole number from {least}, not {value!r}")
    if options.retries > RETRIES_LIMIT:
        raise DefinitionError(f"retries is at most {RETRIES_LIMIT}, not {options.retries!r}")
    if options.max_active_runs is not None and options.max_active_runs > MAX_ACTIVE_RUNS_LIMIT:
        raise DefinitionError(
            f"max_active_runs is at most {MAX_ACTIVE_RUNS_LIMIT:,}, not"
            f" {options.max_active_runs:,}; without max_active_runs the server's limit applies"
        )
    if isinstance(options.priority, bool) or not isinstance(options.priority, int):
        raise DefinitionError(f"priority is a whole number, not {options.priority!r}")
    if abs(options.priority) > PRIORITY_LIMIT:
        raise DefinitionError(
            f"priority is a whole number from {-PRIORITY_LIMIT:,} to {PRIORITY_LIMIT:,}, not"
            f" {options.priority:,}"
        )


def _check_spans(options: RunOptions) -> None:
    for name in ("retry_delay", "timeout"):
        value = getattr(options, name)
        if not (_is_span(value) or (value is None and name == "timeout")):
            raise DefinitionError(f"{name} is a timedelta or a number of seconds, not {value!r}")
    if options.timeout is not None and _seconds_of(options.timeout) == 0:
        raise DefinitionError(
            f"timeout is more than 0 seconds, not {options.timeout!r}: every run would fail; leave"
            " timeout out for no limit"
        )
    if options.memory is not None:
        try:
            memory_bytes(options.memory)
        except ValueError as error:
            raise DefinitionError(f"memory: {error}; leave memory out for no limit") from None
    delay = options.retry_delay
    if not isinstance(delay, timedelta) and delay > timedelta.max.total_seconds():
        # A shorter delay acts as an hour at most: files with longer delays than that exist.
        raise DefinitionError(f"retry_delay is at most an hour, not {delay!r}; write 3600")


def _seconds_of(span: timedelta | float) -> float:
    return span.total_seconds() if isinstance(span, timedelta) else span


def _is_span(value: object) -> bool:
    if isinstance(value, timedelta):
        return value >= timedelta(0)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    # An integer may be too large for a float, so it is only compared; NaN is refused, too.
    return 0 <= value < math.inf


def _check_texts(options: RunOptions) -> None:
    for name in ("owners", "tags"):
        check_texts(name, getattr(options, name))
    for name in ("group", "description"):
        check_text(name, getattr(options, name))
    conf: object = options.spark_conf
    if not isinstance(conf, Mapping) or not all(
        isinstance(text, str) for pair in conf.items() for text in pair
    ):
        raise DefinitionError(f"spark_conf maps texts to texts, not {conf!r}")


def _check_params(params: Any) -> None:
    if not isinstance(params, Mapping):
        raise DefinitionError(f"params maps names to values, not {params!r}")
    if not all(isinstance(name, str) for name in params):
        raise DefinitionError("the names of params are texts")
    try:
        json.dumps(dict(params), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise DefinitionError(f"params takes values that JSON can represent: {error}") from None


def _check_functions(options: RunOptions) -> None:
    for name in ("on_success", "on_failure", "setup", "teardown"):
        value: Any = getattr(options, name)
        if value is not None and (isinstance(value, type) or not callable(value)):
            raise DefinitionError(f"{name} is a function, not {value!r}")

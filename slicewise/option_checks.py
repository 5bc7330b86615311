"""What options may say. Each check raises DefinitionError, which says what would be right."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, get_args

from slicewise.errors import DefinitionError
from slicewise.options import Engine, OnPartial, Pending, RunOptions, WriteMode

NAME_LIMIT = 250
RESERVED_NAMES = ("self", "context", "spark")
Columns = Sequence[str] | Mapping[str, str | None] | None

_CHOICES = {
    "pending": get_args(Pending),
    "write_mode": get_args(WriteMode),
    "engine": get_args(Engine),
    "on_partial": get_args(OnPartial),
}


def check_options(options: RunOptions) -> None:
    """Looks at each option by itself; those of time and of upstream assets have other homes."""
    _check_choices(options)
    _check_strategy(options.strategy)
    _check_counts(options)
    _check_spans(options)
    _check_texts(options)
    _check_params(options.params)
    _check_functions(options)


def check_name(name: object) -> None:
    """Raises DefinitionError for what cannot be the name of an asset."""
    if not isinstance(name, str) or not name.strip():
        raise DefinitionError("the name of an asset is a text that is not blank")
    if len(name) > NAME_LIMIT:
        raise DefinitionError(f"the name of an asset has at most {NAME_LIMIT} characters")
    if not name.isprintable() or name != name.strip():
        raise DefinitionError(
            "the name of an asset has no control characters and no space around it"
        )
    if "/" in name or name in (".", ".."):  # it is a part of the address of the asset's page
        raise DefinitionError('the name of an asset has no / in it, and is not "." or ".."')
    if name in RESERVED_NAMES:
        raise DefinitionError(
            f"{name!r} is a parameter with a meaning of its own ({', '.join(RESERVED_NAMES)});"
            " give the asset another name"
        )


def columns_json(columns: Columns) -> list[dict[str, str | None]] | None:
    """Declared columns as ``[{"name": ..., "type": ...}]``. Raises DefinitionError."""
    if columns is None:
        return None
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise DefinitionError(
            f"columns is a list of names, or maps names to types, not {columns!r}"
        )
    types: Mapping[str, object] = columns if isinstance(columns, Mapping) else {}
    seen: set[str] = set()
    found: list[dict[str, str | None]] = []
    for name in columns:
        if not isinstance(name, str) or not name.strip():
            raise DefinitionError(f"columns: the name of a column is a text, not {name!r}")
        if name in seen:
            raise DefinitionError(f"columns: {name!r} is named twice")
        type_ = types.get(name)
        if type_ is not None and (not isinstance(type_, str) or not type_.strip()):
            raise DefinitionError(f"columns: the type of {name!r} is a text, not {type_!r}")
        seen.add(name)
        found.append({"name": name, "type": type_})
    return found


def check_text(name: str, value: object) -> None:
    """Raises DefinitionError for what is neither a text nor None."""
    if value is not None and not isinstance(value, str):
        raise DefinitionError(f"{name} is a text, not {value!r}")


def _check_choices(options: RunOptions) -> None:
    for name, allowed in _CHOICES.items():
        value = getattr(options, name)
        if value not in allowed:
            shown = " or ".join(f'"{one}"' for one in allowed)
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


def _check_counts(options: RunOptions) -> None:
    for name, least in (("retries", 0), ("max_active_runs", 1), ("refresh", 0)):
        value = getattr(options, name)
        if value is None and name == "max_active_runs":
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise DefinitionError(f"{name} is a whole number from {least}, not {value!r}")
    if isinstance(options.priority, bool) or not isinstance(options.priority, int):
        raise DefinitionError(f"priority is a whole number, not {options.priority!r}")


def _check_spans(options: RunOptions) -> None:
    for name in ("retry_delay", "timeout"):
        value = getattr(options, name)
        if not (_is_span(value) or (value is None and name == "timeout")):
            raise DefinitionError(f"{name} is a timedelta or a number of seconds, not {value!r}")


def _is_span(value: object) -> bool:
    if isinstance(value, timedelta):
        return value >= timedelta(0)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value >= 0 and math.isfinite(value)


def _check_texts(options: RunOptions) -> None:
    for name in ("owners", "tags"):
        value = getattr(options, name)
        is_list = isinstance(value, Iterable) and not isinstance(value, str | Mapping)
        if not is_list or not all(isinstance(item, str) and item.strip() for item in value):
            raise DefinitionError(f"{name} is a list of texts, not {value!r}")
    for name in ("group", "description"):
        check_text(name, getattr(options, name))
    conf: object = options.spark_conf
    if not isinstance(conf, Mapping) or not all(
        isinstance(one, str) for pair in conf.items() for one in pair
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
        raise DefinitionError(f"params hold what JSON can hold: {error}") from None


def _check_functions(options: RunOptions) -> None:
    for name in ("on_success", "on_failure"):
        value: Any = getattr(options, name)
        if value is not None and (isinstance(value, type) or not callable(value)):
            raise DefinitionError(f"{name} is a function, not {value!r}")

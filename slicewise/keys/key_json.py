"""Keys as JSON, by type, so that every plain value is read back unchanged."""

import math
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from slicewise.errors import DefinitionError, PartitionKeyError
from slicewise.keys.partition_key import Interval, PartitionKey
from slicewise.keys.plain_values import PlainValue, order
from slicewise.keys.product_key import WHOLE, ProductKey, WholeKey
from slicewise.keys.record_keys import Record, content, record

_READERS: dict[str, Callable[[Any], PlainValue]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda numbers: timedelta(*numbers),
    "decimal": Decimal,
    "uuid": UUID,
    "tuple": lambda items: tuple(_read(item) for item in items),
    "frozenset": lambda items: frozenset(_read(item) for item in items),
    "float": float,
    "interval": lambda ends: _read_interval(*ends),
    "product": lambda fields: ProductKey(fields["names"], map(_read, fields["keys"])),
    "whole": lambda _: WHOLE,
    "record": lambda content: record(
        content["type"],
        [name for name, _ in content["fields"]],
        [_read(value) for _, value in content["fields"]],
        content["label"],
    ),
}


def key_to_json(key: PartitionKey) -> Any:
    """Return JSON of a key: texts, numbers and booleans unchanged, others as {type: content}.

    A key of a person's own class is written by field, with the key's label, so that a process
    without the class can show the key.
    """
    return _write(key.value)


def key_from_json(content: Any) -> PartitionKey:
    """Return the key that `key_to_json` wrote. Raises DefinitionError for other JSON.

    A key of a person's own class is an instance of that class if this process declared the class,
    else a `RecordKey`, which compares, sorts and is written like the key. No module is imported.
    """
    try:
        return PartitionKey.of(_read(content))
    except PartitionKeyError as error:
        raise DefinitionError(f"{content!r:.200} is no JSON of a partition key: {error}") from error


def _write(value: PlainValue) -> Any:
    if isinstance(value, Record):
        return {"record": _write_record(value)}
    write = _WRITERS.get(type(value))
    return value if write is None else write(value)


def _write_float(value: float) -> Any:
    # JSON has no infinity, and a database may read 1e+16 as a whole number.
    return {"float": repr(value)} if math.isinf(value) or "e+" in repr(value) else value


def _write_interval(value: Interval) -> Any:
    ends = (end.isoformat() for end in (value.local_start, value.local_end))
    return {"interval": [*ends, value.zone]}


def _write_product(value: ProductKey) -> Any:
    keys = [key_to_json(key) for key in value.parts]
    return {"product": {"names": list(value.names), "keys": keys}}


def _write_record(key: Record) -> Any:
    # Fields are pairs, since a database may not keep the order of an object's members.
    type_name, fields = content(key)
    pairs = [[name, _write(value)] for name, value in fields]
    return {"type": type_name, "fields": pairs, "label": key.label}


_WRITERS: dict[type, Callable[[Any], Any]] = {
    float: _write_float,
    datetime: lambda value: {"datetime": value.isoformat()},
    date: lambda value: {"date": value.isoformat()},
    time: lambda value: {"time": value.isoformat()},
    timedelta: lambda value: {"timedelta": [value.days, value.seconds, value.microseconds]},
    Decimal: lambda value: {"decimal": str(value)},
    UUID: lambda value: {"uuid": str(value)},
    tuple: lambda value: {"tuple": [_write(item) for item in value]},
    frozenset: lambda value: {"frozenset": [_write(item) for item in sorted(value, key=order)]},
    Interval: _write_interval,
    ProductKey: _write_product,
    WholeKey: lambda _: {"whole": None},
}


def _read_interval(start: str, end: str, timezone: str) -> Interval:
    return Interval(datetime.fromisoformat(start), datetime.fromisoformat(end), timezone)


def _read(content: Any) -> PlainValue:
    if not isinstance(content, dict):
        return content
    try:
        ((kind, inner),) = content.items()
        return _READERS[kind](inner)
    except DefinitionError:
        raise
    except (ArithmeticError, KeyError, ValueError, TypeError) as error:
        raise DefinitionError(f"{content!r:.200} is no JSON of a partition key: {error}") from error

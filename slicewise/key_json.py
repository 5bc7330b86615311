"""Keys as JSON, by type, so that every plain value comes back as it was."""

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from slicewise.errors import DefinitionError
from slicewise.keys import PartitionKey, PlainValue

_READERS: dict[str, Callable[[Any], PlainValue]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda parts: timedelta(*parts),
    "decimal": Decimal,
    "uuid": UUID,
    "tuple": lambda items: tuple(_read(item) for item in items),
    "frozenset": lambda items: frozenset(_read(item) for item in items),
}


def key_to_json(key: PartitionKey) -> Any:
    """JSON of a key: text, numbers and truth values as they are, others as {type: content}."""
    return _write(key.value)


def key_from_json(content: Any) -> PartitionKey:
    """The key that `key_to_json` wrote. Raises DefinitionError for anything else."""
    return PartitionKey.of(_read(content))


def _write(value: PlainValue) -> Any:
    match value:
        case str() | bool() | int() | float():
            return value
        case datetime():
            return {"datetime": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
        case time():
            return {"time": value.isoformat()}
        case timedelta():
            return {"timedelta": [value.days, value.seconds, value.microseconds]}
        case Decimal() | UUID():
            return {type(value).__name__.lower(): str(value)}
        case tuple():
            return {"tuple": [_write(item) for item in value]}
        case frozenset():
            return {"frozenset": sorted((_write(item) for item in value), key=repr)}
    raise DefinitionError(f"{value!r} has no JSON form as a partition key")


def _read(content: Any) -> PlainValue:
    if not isinstance(content, dict):
        return content
    try:
        ((kind, inner),) = content.items()
        return _READERS[kind](inner)
    except (KeyError, ValueError, TypeError) as error:
        raise DefinitionError(f"{content!r} is no JSON of a partition key") from error

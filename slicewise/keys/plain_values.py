"""Plain values of partition keys: the allowed types, the comparison, and the order.

The order follows Python's equality: 1, 1.0, True and Decimal(1) are one value, and two datetimes
of one instant are one value.
"""

import math
import unicodedata
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

from slicewise.calendar.zones import standard_datetime as plain_datetime
from slicewise.errors import PartitionKeyError
from slicewise.storage.layout import NULL_FOLDER_VALUE

PlainValue = Any  # one of PLAIN_TYPES, checked at run time
Number = bool | int | float | Decimal

PLAIN_TYPES = (
    str,
    bool,
    int,
    float,
    Decimal,
    date,
    datetime,
    time,
    timedelta,
    UUID,
    tuple,
    frozenset,
)

_MOST_DIGITS = 250
_LARGEST = 10**_MOST_DIGITS
MICROSECOND = timedelta(microseconds=1)
_UNPRINTABLE = {"Cc": "a control character", "Cs": "half a character (a surrogate)"}
_UNPRINTABLE |= dict.fromkeys(("Zl", "Zp"), "a line or paragraph separator")
_INSTEAD: dict[type, str] = {
    dict: "use a PartitionKey with fields",
    list: "use a tuple",
    set: "use a frozenset",
    type(None): "leave the key out, or use a word that says why the value is missing",
}


def plain_value(value: object) -> PlainValue:
    """Return the value as one of the standard types, without additions of a subclass.

    Raises PartitionKeyError for each value that cannot be a key.
    """
    read = _READ.get(type(value))
    if read is None:
        read = next((_READ[kind] for kind in type(value).__mro__ if kind in _READ), None)
    if read is None:
        raise PartitionKeyError(_refusal_text(value))
    return read(value)


def _refusal_text(value: object) -> str:
    hint = next((hint for kind, hint in _INSTEAD.items() if isinstance(value, kind)), "")
    if not hint:
        names = ", ".join(kind.__name__ for kind in PLAIN_TYPES)
        hint = f"use one of {names}, or a PartitionKey"
    return f"{value!r:.200} ({type(value).__name__}) cannot be a partition key: {hint}"


def _check_not_nan(number: Any) -> Any:
    if number.is_nan() if isinstance(number, Decimal) else math.isnan(number):
        raise PartitionKeyError("NaN cannot be a partition key: NaN does not equal itself")
    return number


def _check_size(number: Any) -> Any:
    """Return the number; refuse too many digits, because so long a text cannot name a folder."""
    if isinstance(number, Decimal):
        exponent = number.as_tuple().exponent
        short = not number or not isinstance(exponent, int)
        fits = short or (number.adjusted() < _MOST_DIGITS and int(exponent) > -_MOST_DIGITS)
    else:
        fits = -_LARGEST < number < _LARGEST or number in (math.inf, -math.inf)
    if not fits:
        raise PartitionKeyError(
            f"a number with more than {_MOST_DIGITS} digits cannot be a partition key: use a text"
        )
    return number


def _check_text(text: str) -> str:
    if text == NULL_FOLDER_VALUE:
        raise PartitionKeyError(f"{text!r} cannot be a partition key: Spark reads it as null")
    if text.isprintable():
        return text
    for char in text:
        if description := _UNPRINTABLE.get(unicodedata.category(char)):
            raise PartitionKeyError(
                f"the text {text[:200]!r} cannot be a partition key: the text holds {description},"
                f" {char!r}"
            )
    return text


def _check_instant(moment: datetime) -> datetime:
    """Return the datetime with an offset in place of a time zone.

    JSON does not hold a time zone, and folds make a local time ambiguous.
    """
    offset = moment.utcoffset()
    if offset is None:
        return moment.replace(tzinfo=None, fold=0)
    try:
        moment.astimezone(UTC)
    except OverflowError:
        raise PartitionKeyError(
            f"{moment} cannot be a partition key: in UTC it lies outside the years 1 to 9999"
        ) from None
    return moment.replace(tzinfo=timezone(offset), fold=0)


def _check_time(value: time) -> time:
    if value.tzinfo is not None and value.utcoffset() is None:
        raise PartitionKeyError(
            f"{value!r} cannot be a partition key: a time of day has no offset in a time zone"
            " without a date; use one without a zone, or a datetime"
        )
    offset = value.utcoffset()
    zone = None if offset is None else timezone(offset)
    return time(value.hour, value.minute, value.second, value.microsecond, zone)


_READ: dict[type, Callable[[Any], PlainValue]] = {
    bool: bool,
    int: lambda value: _check_size(int(value)),
    float: lambda value: _check_size(_check_not_nan(float(value))),
    Decimal: lambda value: _check_size(_check_not_nan(Decimal(value))),
    str: lambda value: _check_text(str.__str__(value)),
    datetime: lambda value: _check_instant(plain_datetime(value)),
    date: lambda value: date(value.year, value.month, value.day),
    time: _check_time,
    timedelta: lambda value: timedelta(microseconds=timedelta.__floordiv__(value, MICROSECOND)),
    UUID: lambda value: UUID(int=value.int),
    tuple: lambda value: tuple(map(plain_value, value)),
    frozenset: lambda value: frozenset(map(plain_value, value)),
}


def comparable(value: PlainValue) -> PlainValue:
    """Return the value whose equality and hash are the equality and hash of the key.

    Python compares two datetimes of one zone by the local time: both passes of a fold would be
    equal.
    """
    match value:
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC)
        case tuple():
            return tuple(map(comparable, value))
        case frozenset():
            return frozenset(map(comparable, value))
    return value


def order(value: PlainValue) -> tuple[Any, ...]:
    """Return a tuple by which values of all types can be sorted: numbers, texts, dates, times, …"""
    return _ORDER[type(value)](value)


_ORDER: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    **dict.fromkeys((bool, int, float, Decimal), lambda value: (0, value)),
    str: lambda value: (1, value),
    date: lambda value: (2, value),
    datetime: lambda value: (3, value) if value.tzinfo is None else (4, value.astimezone(UTC)),
    time: lambda value: (5, value.tzinfo is not None, since_midnight(value)),
    timedelta: lambda value: (6, value),
    UUID: lambda value: (7, value),
    tuple: lambda value: (8, tuple(map(order, value))),
    frozenset: lambda value: (9, tuple(sorted(map(order, value)))),
}


def since_midnight(value: time) -> timedelta:
    """Return the time since midnight; in UTC and perhaps negative for a time with an offset."""
    clock = timedelta(
        hours=value.hour,
        minutes=value.minute,
        seconds=value.second,
        microseconds=value.microsecond,
    )
    return clock - (value.utcoffset() or timedelta(0))

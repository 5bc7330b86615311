"""Plain values of partition keys: the allowed types, the texts, and the order.

Texts and order follow Python's equality: 1, 1.0, True and Decimal(1) are one value, and two
datetimes of one instant are one value.
"""

import math
import re
import unicodedata
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from urllib.parse import quote, unquote
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
JOINT = "~"
"""The separator between the items of a tuple, and between the fields of a key, in key texts."""

_MOST_DIGITS = 250
_LARGEST = 10**_MOST_DIGITS
_MICROSECOND = timedelta(microseconds=1)
_UNPRINTABLE = {"Cc": "a control character", "Cs": "half a character (a surrogate)"}
_UNPRINTABLE |= dict.fromkeys(("Zl", "Zp"), "a line or paragraph separator")
_INSTEAD: dict[type, str] = {
    dict: "use a PartitionKey with fields",
    list: "use a tuple",
    set: "use a frozenset",
    type(None): "leave the key out, or use a word that says why there is none",
}
_STRUCTURAL = re.compile(r"[%~(){}]")
# Texts that are also texts of another type's value, and texts that look like a marked text.
_AMBIGUOUS = re.compile(
    r"_.*|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e-?\d+)?d?|-?inf"
    r"|\d{4}-\d\d-\d\d(?:T.*)?|-?\d\d:\d\d.*|PT-?[\d.]+S"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|",
)


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
        raise PartitionKeyError("NaN cannot be a partition key: it does not equal itself")
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
                f"the text {text[:200]!r} cannot be a partition key: it holds {description},"
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
    timedelta: lambda value: timedelta(microseconds=timedelta.__floordiv__(value, _MICROSECOND)),
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
    time: lambda value: (5, value.tzinfo is not None, _since_midnight(value)),
    timedelta: lambda value: (6, value),
    UUID: lambda value: (7, value),
    tuple: lambda value: (8, tuple(map(order, value))),
    frozenset: lambda value: (9, tuple(sorted(map(order, value)))),
}


def plain_text(value: PlainValue) -> str:
    """Return the value as people write it. Equal values have equal texts, and so have 1 and "1"."""
    match value:
        case str():
            return value
        case bool() | int() | float() | Decimal():
            return _number_text(value)
        case tuple() if value:
            return JOINT.join(map(exact_text, value))
        case frozenset() if value:
            return JOINT.join(_members(value))
    return exact_text(value)


def exact_text(value: PlainValue) -> str:
    """Return a text that only equal values have, whatever the types of the values.

    A text value is its own exact text, but for `_` before a text that another value would have,
    `_1`, and for the structural characters of key texts, which are percent-encoded.
    """
    return _EXACT[type(value)](value)


_ESCAPED_LETTERS = re.compile("(?:%[89A-F][0-9A-F])+")
_LETTERS = re.compile("[^\x00-\x7f]+")


def readable(text: str) -> str:
    """Return a key text as people read it, with letters in place of their escapes: ``süd``.

    Separators and invisible characters stay escaped; `written` is the inverse.
    """
    return _ESCAPED_LETTERS.sub(_letters, text)


def key_text_of_readable(text: str) -> str:
    """Return the key text of a readable text."""
    return _LETTERS.sub(lambda letters: quote(letters[0], safe=""), text)


def _letters(escapes: re.Match[str]) -> str:
    try:
        letters = unquote(escapes[0], errors="strict")
    except UnicodeDecodeError:
        return escapes[0]
    return letters if letters.isprintable() else escapes[0]


def escape(text: str) -> str:
    """Percent-encode all but letters, digits, `_ - . ~`; a double dot would read as a range."""
    return quote(text, safe="").replace("..", ".%2E")


def _members(value: frozenset[PlainValue]) -> list[str]:
    return [exact_text(item) for item in sorted(value, key=order)]


def _exact_word(text: str) -> str:
    mark = "_" if _AMBIGUOUS.fullmatch(text) else ""
    return mark + _STRUCTURAL.sub(lambda matched: f"%{ord(matched[0]):02X}", text)


def _since_midnight(value: time) -> timedelta:
    """Return the time since midnight; in UTC and perhaps negative for a time with an offset."""
    clock = timedelta(
        hours=value.hour,
        minutes=value.minute,
        seconds=value.second,
        microseconds=value.microsecond,
    )
    return clock - (value.utcoffset() or timedelta(0))


def _time_text(value: time) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    since = _since_midnight(value)
    seconds, fraction = divmod(abs(since) // _MICROSECOND, 1_000_000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    tail = f".{fraction:06}" if fraction else ""
    return f"{'-' if since < timedelta(0) else ''}{clock}{tail}Z"


def _number_text(value: Number) -> str:
    if math.isinf(value):
        return str(float(value))
    if value == int(value):
        return str(int(value))
    # A float and a Decimal of equal value are one key: both have the text of the float.
    if value == float(value):
        return repr(float(value))
    return format(Decimal(value), "f").rstrip("0")


def _exact_number_text(value: Number) -> str:
    """Return the number's text; a Decimal that no float equals has a text of its own.

    So 0.1 and Decimal("0.1") are two keys.
    """
    inexact = isinstance(value, Decimal) and value.is_finite() and value != float(value)
    return _number_text(value) + "d" * inexact


def _datetime_text(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def _timedelta_text(value: timedelta) -> str:
    return f"PT{_number_text(Decimal(value // _MICROSECOND) / 1_000_000)}S"


_EXACT: dict[type, Callable[[Any], str]] = {
    **dict.fromkeys((bool, int, float, Decimal), _exact_number_text),
    str: _exact_word,
    date: date.isoformat,
    datetime: _datetime_text,
    time: _time_text,
    timedelta: _timedelta_text,
    UUID: str,
    tuple: lambda value: f"({JOINT.join(map(exact_text, value))})",
    frozenset: lambda value: f"{{{JOINT.join(_members(value))}}}",
}

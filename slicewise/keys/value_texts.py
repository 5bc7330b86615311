"""The texts of plain values: key texts, exact texts, and key texts as people read them.

Equal values have equal texts: 1, 1.0, True and Decimal(1) are one value, and two datetimes of one
instant are one value.
"""

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import quote, unquote
from uuid import UUID

from slicewise.keys.plain_values import MICROSECOND, PlainValue, order, since_midnight

Number = bool | int | float | Decimal

JOINT = "~"
"""The separator between the items of a tuple, and between the fields of a key, in key texts."""

_STRUCTURAL = re.compile(r"[%~(){}]")
# Texts that are also texts of another type's value, and texts that look like a marked text.
_AMBIGUOUS = re.compile(
    r"_.*|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e-?\d+)?d?|-?inf"
    r"|\d{4}-\d\d-\d\d(?:T.*)?|-?\d\d:\d\d.*|PT-?[\d.]+S"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|",
)


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


def _time_text(value: time) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    since = since_midnight(value)
    seconds, fraction = divmod(abs(since) // MICROSECOND, 1_000_000)
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
    return f"PT{_number_text(Decimal(value // MICROSECOND) / 1_000_000)}S"


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

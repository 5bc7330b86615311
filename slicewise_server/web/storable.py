"""Checks that the database can store a value, applied to all input so that no write fails later."""

import json
import math
from collections.abc import Mapping
from typing import Any

MOST_LEVELS = 100
"""The greatest depth of nested JSON."""

MOST_DIGITS = 1000
"""The greatest number of digits of a whole number in JSON."""

_TOO_LARGE = 10**MOST_DIGITS


def is_storable(text: str) -> bool:
    """Return whether the text has no NUL or lone surrogate, which PostgreSQL does not store."""
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def read_json(text: str) -> Any:
    """Read JSON that a person typed; raise ValueError, with a sentence, for any other text."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"This is no JSON: {error}.") from error
    except ValueError as error:  # a number of more digits than Python reads
        raise ValueError(f"A number has at most {MOST_DIGITS:,} digits.") from error
    except RecursionError as error:
        raise ValueError(f"This is nested deeper than {MOST_LEVELS} levels.") from error
    require_storable(value)
    return value


def read_json_object(text: str) -> dict[str, Any]:
    """Read a JSON object that a person typed; raise ValueError, with a sentence, otherwise."""
    value = read_json(text)
    if not isinstance(value, dict):
        raise ValueError('An object of names and values is needed, for example {"name": 1}.')
    return value


def require_storable(value: Any) -> None:
    """Raise ValueError, with a sentence, for JSON that the database cannot store."""
    pending = [(value, 0)]
    while pending:
        inner, level = pending.pop()
        if level > MOST_LEVELS:
            raise ValueError(f"This is nested deeper than {MOST_LEVELS} levels.")
        if isinstance(inner, str) and not is_storable(inner):
            raise ValueError("Text may not hold NUL or surrogate characters.")
        if isinstance(inner, float) and not math.isfinite(inner):
            raise ValueError("Numbers are finite: neither NaN nor infinite, and none like 1e999.")
        if isinstance(inner, int) and abs(inner) >= _TOO_LARGE:
            raise ValueError(f"A number has at most {MOST_DIGITS:,} digits.")
        if isinstance(inner, Mapping):
            pending += [(member, level + 1) for pair in inner.items() for member in pair]
        elif isinstance(inner, list | tuple):
            pending += [(member, level + 1) for member in inner]

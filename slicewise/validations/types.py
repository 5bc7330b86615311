"""Names of Spark's types in one spelling, read without Spark."""

import re
from difflib import get_close_matches

from slicewise.errors import DefinitionError

__all__ = ["type_text"]

_ALIASES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "text": "string",
    "timestamp_ltz": "timestamp",
}
_PLAIN = {
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "string"),
    *("binary", "date", "timestamp", "timestamp_ntz", "void", "variant", "char", "varchar"),
}
_NESTED = {"array": 1, "map": 2}
_FIELD = re.compile(r"(`[^`]+`|[^\s:<]+)\s*[:\s]\s*(.+)", re.DOTALL)
_UNIT = "(year|month|day|hour|minute|second)"
_INTERVAL = re.compile(rf"interval {_UNIT}( to {_UNIT})?")
_SIZED = re.compile(r"(decimal|char|varchar)\((\d+)(?:,(\d+))?\)")


def type_text(written: object) -> str:
    """Return a type in Spark's spelling: ``"array<int>"`` for ``"ARRAY< Integer >"``.

    Takes a text in Spark's DDL or a DataType. Raises DefinitionError for a text that names no type.
    """
    shown = getattr(written, "simpleString", None)
    if callable(shown):
        return str(shown())
    if not isinstance(written, str) or not written.strip():
        raise DefinitionError(f"a type is a text like 'bigint' or 'array<string>', not {written!r}")
    try:
        return _type(written.strip())
    except ValueError as error:
        raise DefinitionError(f"{written!r} is no type of Spark: {error}") from None


def _type(text: str) -> str:
    name, bracket, rest = text.partition("<")
    name = name.strip().lower()
    if not bracket:
        return _plain(text)
    if not rest.endswith(">"):
        raise ValueError("a '>' is missing")
    inner_types = _split(rest[:-1])
    if name == "struct":
        return f"struct<{','.join(_field(inner_type) for inner_type in inner_types if inner_type)}>"
    if name not in _NESTED:
        raise ValueError(
            f"{name!r} has no types inside; only array, map and struct have types inside"
        )
    if len(inner_types) != _NESTED[name]:
        raise ValueError(f"{name} has {_NESTED[name]} types inside")
    return f"{name}<{','.join(_type(inner_type) for inner_type in inner_types)}>"


def _plain(text: str) -> str:
    words = " ".join(text.lower().split())
    if _INTERVAL.fullmatch(words):
        return words
    name, bracket, arguments = words.replace(" ", "").partition("(")
    name = _ALIASES.get(name, name)
    if name not in _PLAIN:
        near = get_close_matches(name, [*_PLAIN, *_ALIASES], n=1)
        raise ValueError(f"did you mean {near[0]!r}?" if near else f"the type {name!r} is unknown")
    if not bracket:
        return "decimal(10,0)" if name == "decimal" else name  # as Spark reads it
    sized = _SIZED.fullmatch(f"{name}({arguments}")
    if not sized or (sized[3] and name != "decimal"):
        raise ValueError("write sizes as in 'decimal(10,2)' or 'varchar(20)'")
    return f"decimal({sized[2]},{sized[3] or 0})" if name == "decimal" else sized[0]


def _field(text: str) -> str:
    matched = _FIELD.fullmatch(text)
    if not matched:
        raise ValueError("write fields of a struct as in 'struct<city: string>'")
    return f"{matched[1].strip('`')}:{_type(matched[2])}"


def _split(text: str) -> list[str]:
    """Return the texts between the commas that are outside inner brackets."""
    items, depth, start = [], 0, 0
    for position, char in enumerate(text):
        depth += (char in "<(") - (char in ">)")
        if depth < 0:
            raise ValueError("a bracket is closed that was not opened")
        if char == "," and depth == 0:
            items.append(text[start:position].strip())
            start = position + 1
    return [*items, text[start:].strip()]

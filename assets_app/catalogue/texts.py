"""Texts of user code, made fit for the database, which would otherwise refuse the whole text."""

from typing import Any

_NUL, _REPLACEMENT = "\0", "\N{REPLACEMENT CHARACTER}"


def storable(text: str) -> str:
    """Replace characters that PostgreSQL cannot hold: NUL, and halves of surrogate pairs."""
    return text.encode("utf-8", "backslashreplace").decode().replace(_NUL, _REPLACEMENT)


def storable_json(value: Any) -> Any:
    """Replace characters that PostgreSQL cannot hold in every text of a JSON document."""
    match value:
        case str():
            return storable(value)
        case list():
            return [storable_json(item) for item in value]
        case dict():
            return {storable(name): storable_json(item) for name, item in value.items()}
    return value

"""Makes what user code says fit for the database, which would refuse the whole of it otherwise."""

from typing import Any

_NUL, _REPLACEMENT = "\0", "\N{REPLACEMENT CHARACTER}"


def storable(text: str) -> str:
    """The text with what PostgreSQL cannot hold replaced: NUL, and halves of surrogate pairs."""
    return text.encode("utf-8", "backslashreplace").decode().replace(_NUL, _REPLACEMENT)


def storable_json(value: Any) -> Any:
    """The same for every text in a JSON document."""
    match value:
        case str():
            return storable(value)
        case list():
            return [storable_json(item) for item in value]
        case dict():
            return {storable(name): storable_json(item) for name, item in value.items()}
    return value

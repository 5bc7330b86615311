"""Ids of rows in addresses and forms."""

from collections.abc import Iterable

# A bigint has 19 digits; no table comes near.
_MOST_DIGITS = 18


def is_id(text: str) -> bool:
    """Return whether a text is a number that a row may have."""
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS


def ids_of(texts: Iterable[str]) -> list[int]:
    """Return the ids among texts, and leave other texts out."""
    return [int(text) for text in texts if is_id(text)]

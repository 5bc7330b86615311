"""Counts with a noun, and the first of many texts."""

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """Return a number with a noun whose plural ends with s: ``1 run``, ``3,000 runs``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(texts: Sequence[str], most: int) -> str:
    """Return the first texts with commas, and the number of the others: ``a, b and 3 more``."""
    more = f" and {len(texts) - most:,} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more

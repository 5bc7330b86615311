"""Amounts of memory in the form that people write: "512m", "2g"."""

import re

_UNITS = {"k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
_PATTERN = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) ?([kmgt])(?:i?b)?", re.IGNORECASE)


def memory_bytes(text: object) -> int:
    """Return the bytes that a text names. Raises ValueError for a text that names no amount."""
    match = _PATTERN.fullmatch(text) if isinstance(text, str) else None
    size = int(float(match[1]) * _UNITS[match[2].lower()]) if match else 0
    if size < 1:
        raise ValueError(f'an amount of memory is a text such as "512m" or "2g", not {text!r}')
    return size


def memory_text(size: int) -> str:
    """Return an amount of bytes as text, in the largest unit that is not greater."""
    for name in ("TiB", "GiB", "MiB"):
        unit = _UNITS[name[0].lower()]
        if size >= unit:
            return f"{size / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{size:,} bytes"

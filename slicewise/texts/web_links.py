"""Addresses to which pages link."""

from typing import TypeGuard
from urllib.parse import urlsplit


def is_web_address(value: object) -> TypeGuard[str]:
    """Return whether a page may link to an address: ``javascript:`` and the like are code."""
    if not isinstance(value, str) or not value.isprintable() or " " in value:
        return False
    try:
        parts = urlsplit(value)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False

"""Addresses of web pages that are written in a setting."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured


def web_address(name: str, text: str) -> str:
    """Return the address; one that no link can lead to stops the start. Empty stays empty."""
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_address = False
    if text and not is_address:
        raise ImproperlyConfigured(
            f"{name} is {text!r}: write it with http:// or https://, as http://spark.example:4040."
        )
    return text

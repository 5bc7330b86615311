"""Settings that are addresses of web pages."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured


def web_address(name: str, text: str) -> str:
    """Return the address, or an empty text; raise ImproperlyConfigured for an invalid address."""
    try:
        url = urlsplit(text)
        is_address = url.scheme in ("http", "https") and bool(url.hostname)
    except ValueError:
        is_address = False
    if text and not is_address:
        raise ImproperlyConfigured(
            f"{name} is {text!r}: write it with http:// or https://, as http://spark.example:4040."
        )
    return text

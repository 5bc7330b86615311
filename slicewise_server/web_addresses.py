"""Settings that are addresses of web pages."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

from slicewise.texts import is_web_address


def web_address(name: str, text: str) -> str:
    """Return the address, or an empty text; raise ImproperlyConfigured for an invalid address."""
    if text and not is_web_address(text):
        raise ImproperlyConfigured(
            f"{name} is {text!r}: write it with http:// or https:// and without blanks, as"
            " http://spark.example:4040."
        )
    return text

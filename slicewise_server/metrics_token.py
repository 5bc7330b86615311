"""The setting of the token that scrapers of metrics send."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

SHORTEST = 16


def metrics_token(setting: str, token: str) -> str:
    """Return the token, empty if not set; raise ImproperlyConfigured for a token that can be
    guessed, or that no header can carry.
    """
    if token and (len(token) < SHORTEST or not token.isascii() or not token.isprintable()):
        raise ImproperlyConfigured(
            f"{setting}: too short, or not only printable ASCII. Write {SHORTEST} letters and"
            " digits or more, as `openssl rand -hex 32` does."
        )
    return token

"""Settings of the form ``name=value name=value``."""

from __future__ import annotations

import shlex

from django.core.exceptions import ImproperlyConfigured


def pairs(setting: str, text: str) -> dict[str, str]:
    """Parse words ``name=value``, quoted as in a shell: values may hold commas and blanks."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ImproperlyConfigured(f"{setting} cannot be read: {error}.") from error
    values = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise ImproperlyConfigured(
                f"{setting} holds words name=value with blanks between, not {word!r}."
            )
        values[name] = value
    return values

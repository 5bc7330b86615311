"""Helpers that collect the errors of several request fields, and that refuse requests
over a limit.
"""

from collections.abc import Callable
from typing import TypeVar

from django.conf import settings

from slicewise_server.web.request_errors import InvalidRequest

T = TypeVar("T")


def refuse_above(setting: str, number: int, noun: str, field: str) -> None:
    """Raise InvalidRequest on a field if a number exceeds the limit that a setting has for one
    backfill.
    """
    limit = getattr(settings, setting)
    if number > limit:
        raise InvalidRequest(
            {
                field: f"{number:,} {noun} are more than one backfill may have"
                f" ({limit:,}, setting {setting})."
            }
        )


def gather(errors: dict[str, list[str]], work: Callable[[], T]) -> T | None:
    """Return the result of the work; if the work raises InvalidRequest, add its errors to
    ``errors`` and return None.
    """
    try:
        return work()
    except InvalidRequest as refusal:
        for name, messages in refusal.errors.items():
            errors.setdefault(name, []).extend(messages)
        return None

"""What is wrong with a request: of several fields at once, and what is too much."""

from collections.abc import Callable
from typing import TypeVar

from django.conf import settings

from accounts_app.errors import InvalidRequest

T = TypeVar("T")


def refuse_above(setting: str, number: int, noun: str, field: str) -> None:
    """Refuse more of something than a setting lets one backfill have."""
    most = getattr(settings, setting)
    if number > most:
        raise InvalidRequest(
            {
                field: f"{number:,} {noun} are more than one backfill may have"
                f" ({most:,}, setting {setting})."
            }
        )


def gather(errors: dict[str, list[str]], work: Callable[[], T]) -> T | None:
    """Return the result of the work, or None with what is wrong added to the errors."""
    try:
        return work()
    except InvalidRequest as refused:
        for name, said in refused.errors.items():
            errors.setdefault(name, []).extend(said)
        return None

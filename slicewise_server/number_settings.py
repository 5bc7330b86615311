"""Settings that are numbers above zero, counts of 1 and more, or amounts of memory."""

from __future__ import annotations

import environ
from django.core.exceptions import ImproperlyConfigured

from slicewise.texts import memory_bytes


def above_zero(env: environ.Env, setting: str, default: float) -> float:
    """Return a number from the environment; raise ImproperlyConfigured for zero and below.

    A pause of no seconds, say, would never add up to the time after which retries end.
    """
    number = float(env.float(setting, default=default))
    if not number > 0:
        raise ImproperlyConfigured(f"{setting} has to be above 0, not {number:g}.")
    return number


def at_least_one(env: environ.Env, setting: str, default: int) -> int:
    """Return a count from the environment; raise ImproperlyConfigured below 1.

    A limit of no attempts, say, is reached before the first attempt.
    """
    count: int = env.int(setting, default=default)
    if count < 1:
        raise ImproperlyConfigured(f"{setting} has to be 1 or more, not {count}.")
    return count


def memory(env: environ.Env, setting: str) -> int | None:
    """Return an amount of memory such as "2g" from the environment, in bytes; None if unset.

    Raise ImproperlyConfigured for text that is not an amount of memory.
    """
    text = env.str(setting, default="")
    try:
        return memory_bytes(text) if text else None
    except ValueError as error:
        raise ImproperlyConfigured(f"{setting}: {error}.") from None

"""Work on assets in savepoints: an error of one asset keeps no other from being made."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from django.db import transaction

from assets_app.execution.database import is_passing, is_too_much
from assets_app.models import Asset
from assets_app.scheduling.slices import SlicesLocked

log = logging.getLogger(__name__)

Item = TypeVar("Item")


@dataclass(slots=True)
class Outcome:
    """How the work on one asset ended; ``error`` is None where it succeeded."""

    error: Exception | None = None


@contextmanager
def apart(asset: Asset) -> Iterator[Outcome]:
    """Work on an asset in a savepoint: an error is undone, logged and kept in the outcome, and the
    caller goes on with the next one.

    An error that passes is raised: the caller is to fail, so that all is looked at once more. That
    somebody has locked its slices is none, and not logged.
    """
    outcome = Outcome()
    try:
        with transaction.atomic():
            yield outcome
    except SlicesLocked as error:
        outcome.error = error
    except Exception as error:
        if _is_of_none(error):
            raise
        log.exception("an asset could not be judged", extra={"asset": asset.name})
        outcome.error = error


def in_halves(
    items: Sequence[Item], work: Callable[[Sequence[Item]], None]
) -> list[tuple[Item, Exception]]:
    """Do the work on all items in one savepoint or, where that fails, on either half of them, and
    so on; return the items on which it fails alone, each with its error.

    One bad item costs a few times the work, not one statement for each of the others. An error
    that passes is raised.
    """
    if not items:
        return []
    try:
        with transaction.atomic():
            work(items)
    except Exception as error:
        if _is_of_none(error):
            raise
        if len(items) == 1:
            return [(items[0], error)]
        middle = len(items) // 2
        return in_halves(items[:middle], work) + in_halves(items[middle:], work)
    return []


def _is_of_none(error: Exception) -> bool:
    """Return whether an error says nothing about what was worked on, as a lost connection does."""
    return is_passing(error) and not is_too_much(error)

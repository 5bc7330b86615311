"""Savepoints for work on one asset: an error of one asset keeps no other asset from its work."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from django.db import transaction

from assets_app.execution.database import is_passing, is_too_much
from assets_app.models import Asset
from assets_app.scheduling.partition_marks import PartitionsLocked

log = logging.getLogger(__name__)

Item = TypeVar("Item")


@dataclass(slots=True)
class Outcome:
    """The result of the work on one asset; ``error`` is None where the work succeeded."""

    error: Exception | None = None


@contextmanager
def isolated(asset: Asset) -> Iterator[Outcome]:
    """Work on an asset in a savepoint: an error is rolled back, logged and kept in the outcome, and
    the caller goes on with the next asset.

    A transient error is raised: the caller must fail, so that all assets are tried once more.
    PartitionsLocked, raised where another transaction has locked partitions of the asset, is kept
    in the outcome and not logged.
    """
    outcome = Outcome()
    try:
        with transaction.atomic():
            yield outcome
    except PartitionsLocked as error:
        outcome.error = error
    except Exception as error:
        if _is_transient(error):
            raise
        log.exception("an asset could not be evaluated", extra={"asset": asset.name})
        outcome.error = error


def in_halves(
    items: Sequence[Item], work: Callable[[Sequence[Item]], None]
) -> list[tuple[Item, Exception]]:
    """Do the work on all items in one savepoint or, where that fails, on either half of the items,
    and so on; return the items on which the work fails alone, each with its error.

    One bad item costs a few times the work, not one statement for each other item. A transient
    error is raised.
    """
    if not items:
        return []
    try:
        with transaction.atomic():
            work(items)
    except Exception as error:
        if _is_transient(error):
            raise
        if len(items) == 1:
            return [(items[0], error)]
        middle = len(items) // 2
        return in_halves(items[:middle], work) + in_halves(items[middle:], work)
    return []


def _is_transient(error: Exception) -> bool:
    """Return whether an error, like a lost connection, says nothing about the items of work."""
    return is_passing(error) and not is_too_much(error)

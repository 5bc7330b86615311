"""Shapes in which backfills are read."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import models

if TYPE_CHECKING:
    from backfills_app.models import Backfill, BackfillAsset

# What differs between two reports of the same failure.
_VARIABLE = re.compile(r"[0-9][0-9a-fTZ:.+-]*")


class BackfillQuerySet(models.QuerySet["Backfill"]):
    """Backfills, with what lists and pages show of them."""

    def listed(self) -> "BackfillQuerySet":
        """Those not deleted, newest first, with their assets and counts: two statements."""
        return (
            self.filter(deleted=False)
            .select_related("asset__partition_definition", "submitted_by", "group")
            .defer("asset__partition_definition__spec")
            .prefetch_related("assets__asset")
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """Failed runs that say the same, apart from numbers and dates.

    ``examples`` are the latest, each with its number and its selection.
    """

    error: str
    examples: tuple[tuple[int, str], ...]
    number: int


def failures_of(backfill: "Backfill", most_runs: int = 1000) -> list[Failure]:
    """The latest failed runs of a backfill, grouped by what they say: one statement."""
    failed = backfill.group.runs.filter(state="failed").order_by("-ended_at")
    groups: dict[str, list[tuple[int, str, str]]] = {}
    for pk, selection, error in failed.values_list("pk", "selection", "error")[:most_runs]:
        groups.setdefault(_VARIABLE.sub("#", error), []).append((pk, selection, error))
    found = [
        Failure(runs[0][2], tuple((pk, selection) for pk, selection, _ in runs[:5]), len(runs))
        for runs in groups.values()
    ]
    return sorted(found, key=lambda failure: -failure.number)


def partitions_page(
    part: "BackfillAsset", page: int, size: int
) -> list[tuple[str, str, str, int | None]]:
    """Key, state, reason and run of the partitions numbered so: a stretch of one index."""
    first = (page - 1) * size
    rows = part.partitions.filter(position__gte=first, position__lt=first + size)
    return list(rows.order_by("position").values_list("key", "state", "reason", "run"))


def page_of_interest(part: "BackfillAsset", size: int) -> int:
    """The page with the first partition that still waits, else the first one."""
    waiting = part.partitions.filter(state="waiting").order_by("position")
    first = waiting.values_list("position", flat=True).first()
    return 1 if first is None else first // size + 1

"""What failed in a backfill, by what it says."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backfills_app.models import Backfill


# What differs between two reports of the same failure.
_VARIABLE = re.compile(r"[0-9][0-9a-fTZ:.+-]*")


@dataclass(frozen=True, slots=True)
class Failure:
    """Failed runs that say the same, apart from numbers and dates.

    ``examples`` are the latest, each with its number and its selection.
    """

    error: str
    examples: tuple[tuple[int, str], ...]
    number: int


def failures_of(backfill: "Backfill", most_runs: int = 1000) -> list[Failure]:
    """Return the latest failed runs of a backfill, grouped by what they say: one statement.

    A run of which everything was put back into the queue is history, and no failure any more.
    """
    # By the name of the relation: models import this module.
    failed = (
        backfill.group.runs.filter(state="failed", backfill_partitions__state="failed")
        .distinct()
        .order_by("-ended_at", "pk")
    )
    groups: dict[str, list[tuple[int, str, str]]] = {}
    for pk, selection, error in failed.values_list("pk", "selection", "error")[:most_runs]:
        groups.setdefault(_VARIABLE.sub("#", error), []).append((pk, selection, error))
    found = [
        Failure(runs[0][2], tuple((pk, selection) for pk, selection, _ in runs[:5]), len(runs))
        for runs in groups.values()
    ]
    return sorted(found, key=lambda failure: -failure.number)

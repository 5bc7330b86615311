"""The failed runs of a backfill, grouped by their error."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backfills_app.models import Backfill


# Text that differs between two reports of the same failure.
_VARIABLE = re.compile(r"[0-9][0-9a-fTZ:.+-]*")


@dataclass(frozen=True, slots=True)
class Failure:
    """Failed runs with the same error, apart from numbers and dates.

    ``examples`` are the latest runs, each with its number and its selection.
    """

    error: str
    examples: tuple[tuple[int, str], ...]
    number: int


def failures_of(backfill: "Backfill", most_runs: int = 1000) -> list[Failure]:
    """Return the latest failed runs of a backfill, grouped by error: one query.

    A run whose partitions were all put back into the queue is history, and no failure any more.
    """
    # The relation is used by name, since models import this module.
    failed = (
        backfill.group.runs.filter(state="failed", backfill_partitions__state="failed")
        .distinct()
        .order_by("-ended_at", "pk")
    )
    groups: dict[str, list[tuple[int, str, str]]] = {}
    for pk, selection, error in failed.values_list("pk", "selection", "error")[:most_runs]:
        groups.setdefault(_VARIABLE.sub("#", error), []).append((pk, selection, error))
    failures = [
        Failure(runs[0][2], tuple((pk, selection) for pk, selection, _ in runs[:5]), len(runs))
        for runs in groups.values()
    ]
    return sorted(failures, key=lambda failure: -failure.number)

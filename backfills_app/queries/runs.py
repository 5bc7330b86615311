"""The backfills of runs, for pages that list runs of several requests."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from assets_app.models import Run


class BackfillOfRun(NamedTuple):
    """The number and the name of a backfill, deleted or not."""

    pk: int
    name: str


def backfills_of_runs(run_ids: Collection[int]) -> Mapping[int, BackfillOfRun]:
    """Return the backfill of each run that belongs to a backfill: one statement, none without
    runs.
    """
    if not run_ids:
        return {}
    runs = Run.objects.filter(pk__in=run_ids, group__backfill__isnull=False).order_by()
    rows = runs.values_list("pk", "group__backfill__pk", "group__backfill__name")
    return {run_id: BackfillOfRun(pk, name) for run_id, pk, name in rows}

"""The hint on a cell of the grid under the pointer: the look of a partition, and the last run."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from assets_app.models import Asset, AssetPartition
from assets_app.queries.clock import database_now
from assets_app.queries.overdue import late_marks
from assets_app.queries.staleness import newer_inputs
from assets_app.views.partition_looks import look_of, window_of
from partitions_app.labels import label_of


def partition_hint(
    request: HttpRequest, asset: Asset, key: str, row: AssetPartition | None
) -> HttpResponse:
    """Render the hint on one partition, whose row the caller has read with its runs: three
    statements at most, and another one for a stale partition.
    """
    window = window_of(asset, key) if row is None else None
    now = database_now()
    newer = newer_inputs(asset, [key]).get(key) if row and row.version else None
    mark = late_marks(asset, [key], now).get(key)
    context = {
        "label": label_of(asset.definition, key),
        "key": key,
        "row": row,
        "look": look_of(row, window, now, is_stale=newer is not None, mark=mark),
        "newer": newer,
        "run": row and (row.held_by or row.last_run),
    }
    return render(request, "assets_app/partition_hint.html", context)

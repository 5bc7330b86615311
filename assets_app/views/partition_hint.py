"""The hint on a cell of the grid under the pointer: the look of a partition, and the last run."""

from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from assets_app.models import Asset, AssetPartition
from assets_app.queries.clock import database_now
from assets_app.queries.overdue import LateMark, late_marks
from assets_app.queries.staleness import newer_inputs
from partitions_app.labels import label_of
from partitions_app.state_badges import MISSING, NOT_YET_DUE, badge_of_partition


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
        "look": look_of(row, window, now, is_stale=newer is not None, mark=mark),
        "newer": newer,
        "run": row and (row.held_by or row.last_run),
    }
    return render(request, "assets_app/partition_hint.html", context)


def window_of(asset: Asset, key: str) -> Any:
    """Return the window of a key that has no row; None for a key without time.

    Raise Http404 if the key names no partition.
    """
    definition = asset.definition
    if definition is None:
        if key:
            raise Http404(f"{asset.name} is unpartitioned and has no partition {key}.")
        return None
    try:
        parsed = definition.parse(key)
    except ValueError as error:
        raise Http404(f"{asset.name} has no partition {key}.") from error
    return parsed.time


def look_of(
    row: AssetPartition | None, window: Any, now: datetime, *, is_stale: bool, mark: LateMark | None
) -> Any:
    """Return the look of a partition, of which ``row`` and ``window`` may be None."""
    lateness = mark.word if mark else ""
    if row is not None or lateness:
        run_state = row.held_by.state if row is not None and row.held_by else None
        state = MISSING.name if row is None else row.state
        return badge_of_partition(state, run_state, is_stale=is_stale, lateness=lateness)
    return NOT_YET_DUE if window is not None and window.end > now else MISSING

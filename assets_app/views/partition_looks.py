"""The window and the look of one partition, which may have no row."""

from datetime import datetime

from django.http import Http404

from assets_app.models import Asset, AssetPartition
from assets_app.queries.overdue import LateMark
from partitions_app.state_badges import MISSING, NOT_YET_DUE, StateBadge, badge_of_partition
from slicewise import Interval


def window_of(asset: Asset, key: str) -> Interval | None:
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
    window: Interval | None = parsed.time
    return window


def look_of(
    row: AssetPartition | None,
    window: Interval | None,
    now: datetime,
    *,
    is_stale: bool,
    mark: LateMark | None,
) -> StateBadge:
    """Return the look of a partition, of which ``row`` and ``window`` may be None."""
    lateness = mark.word if mark else ""
    if row is not None or lateness:
        run_state = row.held_by.state if row is not None and row.held_by else None
        state = MISSING.name if row is None else row.state
        return badge_of_partition(state, run_state, is_stale=is_stale, lateness=lateness)
    return NOT_YET_DUE if window is not None and window.end > now else MISSING

"""Overdue partitions on a zoomed-out page of the grid: one statement, however many there are.

A cell that is one partition looks overdue if the partition is missing and no run holds it. The same
partitions are counted here, so that a cell keeps its numbers at every zoom.
"""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from django.db import connection

from assets_app.models import Asset
from assets_app.queries.overdue import is_watched
from partitions_app.grid.layouts import Layout
from partitions_app.grid.periods import midnight
from partitions_app.grid.tables import share_starts
from slicewise.keys import SEPARATOR

# Most of these partitions have no row of their own, and thus no column with the segment: the text
# of the segment is the key without the part of time.
_OVERDUE = """
WITH split AS (
    SELECT late.key, late.window_start, string_to_array(late.key, %(separator)s) AS parts
    FROM assets_app_latepartition AS late
    LEFT JOIN assets_app_assetpartition AS partition
        ON partition.asset_id = late.asset_id AND partition.identity = late.identity
       AND partition.key = late.key
    WHERE late.asset_id = %(asset)s AND late.identity = %(identity)s
      AND late.overdue_at <= %(now)s
      AND late.window_start >= %(first)s AND late.window_start < %(stop)s
      AND (partition.id IS NULL OR (
          partition.version = 0 AND partition.state = 'missing' AND partition.held_by_id IS NULL
      ))
), overdue AS (
    SELECT key, window_start, array_to_string(
        parts[:%(position)s::int - 1] || parts[%(position)s::int + 1:], %(separator)s
    ) AS segment
    FROM split
)
{selected} FROM overdue WHERE segment = ANY(%(segments)s::text[]) {arranged}
"""
_COUNTS = _OVERDUE.format(
    selected="SELECT width_bucket(window_start, %(edges)s::timestamptz[]), segment, count(*)",
    arranged="GROUP BY 1, 2",
)
_KEYS = _OVERDUE.format(selected="SELECT key", arranged="ORDER BY window_start, key LIMIT %(most)s")


def overdue_shares(asset: Asset, page: Layout, now: datetime) -> dict[tuple[date, str], int]:
    """Return the numbers of overdue partitions by the first day of the cell and the segment.

    One statement for an asset with a freshness, none for other assets.
    """
    if not is_watched(asset) or page.counts_unit is None:
        return {}
    period, time_definition = page.stretch
    starts = list(share_starts(period, page.counts_unit))
    # Computed here: the time zones of the database may be of another year.
    edges = [midnight(start, time_definition.timezone) for start in starts]
    rows = _rows(_COUNTS, asset, page, now, edges=edges)
    return {(starts[cell - 1], segment): number for cell, segment, number in rows}


def overdue_keys(asset: Asset, page: Layout, now: datetime, most: int) -> list[str]:
    """Return the keys of the overdue partitions of a page, the first ``most`` in order of time."""
    if not is_watched(asset):
        return []
    return [key for (key,) in _rows(_KEYS, asset, page, now, most=most)]


def _rows(
    statement: str, asset: Asset, page: Layout, now: datetime, **more: Any
) -> Sequence[Sequence[Any]]:
    period, time_definition = page.stretch
    if page.definition is None:
        return []
    names, time_name = page.definition.space.names, page.definition.space.time_name
    parameters: dict[str, Any] = {
        "asset": asset.pk,
        "identity": asset.identity,
        "now": now,
        "first": midnight(period.first, time_definition.timezone),
        "stop": midnight(period.stop, time_definition.timezone),
        "separator": SEPARATOR,
        "position": names.index(time_name or "") + 1,
        "segments": list(page.segments),
    }
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters | more)
        rows: Sequence[Sequence[Any]] = cursor.fetchall()
        return rows

"""Numbers of a backfill's partitions by cell of a zoomed-out grid."""

from collections.abc import Sequence
from datetime import date
from typing import Any

from django.db import connection

from backfills_app.models import BackfillAsset
from partitions_app.grid.layouts import Layout
from partitions_app.grid.share_cells import Bucketed
from slicewise_server.web.kept_counts import kept_count

# The names of the grid for states of a backfill's partitions.
_NAMES = {"succeeded": "materialized", "active": "held", "waiting": "missing"}
# The bucket, a local date, is cut to the cell after rows are counted: to cut it a million times
# takes as long as all the rest.
_COUNTS = """
WITH counted AS (
    SELECT partition.bucket, partition.segment, partition.state, count(*) AS number
    FROM {rows} GROUP BY 1, 2, 3
)
SELECT date_trunc(%(unit)s, bucket)::date, segment, state, sum(number)::bigint
FROM counted WHERE segment = ANY(%(segments)s::text[]) GROUP BY 1, 2, 3
"""
# One range may have all rows, which several processes of the database read at once.
_OF_ONE_RANGE = _COUNTS.format(
    rows="""backfills_app_backfillpartition AS partition
    WHERE partition.backfill_asset_id = %(backfill_asset)s
      AND partition.position >= %(first)s AND partition.position < %(stop)s"""
)
# Several ranges have few rows each, which an index finds.
_OF_RANGES = _COUNTS.format(
    rows="""unnest(%(firsts)s::int[], %(stops)s::int[]) AS span(first, stop)
    JOIN backfills_app_backfillpartition AS partition
        ON partition.backfill_asset_id = %(backfill_asset)s
       AND partition.position >= span.first AND partition.position < span.stop"""
)


# The partitions of a page in one state, in order.
_KEYS = """
SELECT partition.key
FROM unnest(%(firsts)s::int[], %(stops)s::int[]) AS span(first, stop)
JOIN backfills_app_backfillpartition AS partition
    ON partition.backfill_asset_id = %(backfill_asset)s
   AND partition.position >= span.first AND partition.position < span.stop
WHERE partition.state = %(state)s AND partition.segment = ANY(%(segments)s::text[])
ORDER BY partition.position LIMIT %(most)s
"""


def keys_in_state(
    asset_row: BackfillAsset,
    page: Layout,
    ranges: Sequence[tuple[int, int]],
    state: str,
    most: int,
) -> list[str]:
    """Return the keys of the partitions at these positions, as far as their segments are on the
    page, that have a state: the first ``most``, in order. One query.
    """
    values: dict[str, Any] = {
        "firsts": [first for first, _ in ranges],
        "stops": [stop for _, stop in ranges],
        "backfill_asset": asset_row.pk,
        "segments": list(page.segments),
        "state": state,
        "most": most,
    }
    with connection.cursor() as cursor:
        cursor.execute(_KEYS, values)
        return [key for (key,) in cursor.fetchall()]


def cell_counts(
    asset_row: BackfillAsset, page: Layout, ranges: Sequence[tuple[int, int]]
) -> Bucketed:
    """Return the numbers of the partitions at these positions, by cell and state, as far as their
    segments are on the page.

    One query, which reads these rows: a million at most, since a backfill has no more. A count that
    takes long is kept for a while, and as long as no partition changes its state.
    """
    if not ranges:
        return {}
    shown = (page.counts_unit, ranges[0][0], ranges[-1][1], page.segment_first, page.rows)
    states = ("waiting", "active", "succeeded", "failed", "canceled", "skipped")
    rows = kept_count(
        f"cells of {asset_row.pk} {shown}",
        lambda: _counted(asset_row, page, ranges),
        version=".".join(str(getattr(asset_row, state)) for state in states),
    )
    counts: dict[tuple[date, str], dict[str, int]] = {}
    for day, segment, state, number in rows:
        counts.setdefault((date.fromisoformat(day), segment), {})[state] = number
    return counts


def _counted(
    asset_row: BackfillAsset, page: Layout, ranges: Sequence[tuple[int, int]]
) -> list[tuple[str, str, str, int]]:
    values: dict[str, Any] = {
        "unit": page.counts_unit,
        "first": ranges[0][0],
        "stop": ranges[0][1],
        "firsts": [first for first, _ in ranges],
        "stops": [stop for _, stop in ranges],
        "backfill_asset": asset_row.pk,
        "segments": list(page.segments),
    }
    with connection.cursor() as cursor:
        cursor.execute(_OF_ONE_RANGE if len(ranges) == 1 else _OF_RANGES, values)
        return [
            (day.isoformat(), segment, _NAMES.get(state, state), number)
            for day, segment, state, number in cursor.fetchall()
        ]

"""Stale partitions on a zoomed-out page of the grid, and as a selection: one statement, however
many there are, and two more where runs of several partitions made some of them.

The same partitions look stale in cells that are one partition, and count in the head of the page.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import date
from typing import Any, NamedTuple

from django.db import connection

from assets_app.models import Asset
from assets_app.queries.outdated import Candidates, outdated_statement, stale_candidates
from partitions_app.grid.layouts import Layout
from partitions_app.grid.periods import midnight
from partitions_app.grid.tables import share_starts
from slicewise_server.web.kept_counts import kept_count

# Of so many keys on a page, the definition and the mappings decide. Beyond, partitions of runs of
# one partition count as the rows tell, and partitions of runs of several do not count.
MOST_EXAMINED = 5_000
_ON_PAGE = (
    "own.window_start >= %(first)s AND own.window_start < %(stop)s"
    " AND own.segment = ANY(%(segments)s::text[])"
)
_COUNTS = outdated_statement(
    "SELECT cell, segment, is_shared, count(*), array_agg(key) FILTER (WHERE number <= %(most)s)",
    among=_ON_PAGE,
    rows="""(
    SELECT width_bucket(window_start, %(edges)s::timestamptz[]) AS cell, segment, is_shared, key,
        row_number() OVER (ORDER BY window_start, segment) AS number
    FROM candidate
) AS numbered GROUP BY 1, 2, 3""",
)
_KEYS = "candidate ORDER BY window_start, key LIMIT %(most)s"
_KEYS_OF_PAGE = outdated_statement("SELECT key, is_shared", among=_ON_PAGE, rows=_KEYS)
_KEYS_OF_ASSET = outdated_statement("SELECT key, is_shared", rows=_KEYS)


class StaleShares(NamedTuple):
    """The numbers of stale partitions by the first day of the cell and the segment, without zeros;
    at least so many where ``is_cut``.
    """

    by_cell: dict[tuple[date, str], int]
    is_cut: bool = False


def stale_shares(asset: Asset, page: Layout) -> StaleShares:
    """Return the numbers of stale partitions in the cells of a page. A count that takes long is
    kept for a while, as the number in the head of the page is.
    """
    if not asset.active or page.counts_unit is None:
        return StaleShares({})
    period, time_definition = page.stretch
    starts = list(share_starts(period, page.counts_unit))
    # Computed here: the time zones of the database may be of another year.
    edges = [midnight(start, time_definition.timezone) for start in starts]
    shown = (page.counts_unit, period.first, period.stop, page.segment_first, page.rows)
    rows, is_cut = kept_count(
        f"stale cells of {asset.pk} {asset.identity} {shown}", lambda: _counted(asset, page, edges)
    )
    return StaleShares({(starts[cell - 1], segment): number for cell, segment, number in rows},
                       is_cut)  # fmt: skip


def stale_keys(asset: Asset, page: Layout | None, most: int) -> list[str] | None:
    """Return the keys of the stale partitions of a page, or of the asset, in order of time; None if
    more than ``most`` partitions are perhaps stale.
    """
    if not asset.active:
        return []
    statement = _KEYS_OF_ASSET if page is None else _KEYS_OF_PAGE
    rows = _rows(statement, asset, page, most=most + 1)
    if len(rows) > most:
        return None
    stale = stale_candidates({asset: [Candidates(shared, 1, [key]) for key, shared in rows]})
    return [key for key, _ in rows if key in stale[asset.pk]]


def _counted(
    asset: Asset, page: Layout, edges: Sequence[Any]
) -> tuple[list[tuple[int, str, int]], bool]:
    """Return number, segment and count of each cell with stale partitions, and whether partitions
    were left out.
    """
    rows = _rows(_COUNTS, asset, page, edges=edges, most=MOST_EXAMINED)
    cells = [
        ((cell, segment), Candidates(is_shared, number, keys or []))
        for cell, segment, is_shared, number, keys in rows
    ]
    stale = stale_candidates({asset: [candidates for _, candidates in cells]})[asset.pk]
    sums: Counter[tuple[int, str]] = Counter()
    is_cut = False
    for cell, (is_shared, number, keys) in cells:
        unexamined_count = number - len(keys)
        sums[cell] += sum(key in stale for key in keys)
        if is_shared:
            is_cut = is_cut or unexamined_count > 0
        else:
            sums[cell] += unexamined_count
    return [(*cell, number) for cell, number in sums.items() if number], is_cut


def _rows(
    statement: str, asset: Asset, page: Layout | None, **more: Any
) -> Sequence[Sequence[Any]]:
    parameters: dict[str, Any] = {"assets": [asset.pk], "identities": [asset.identity]}
    if page is not None:
        period, time_definition = page.stretch
        parameters |= {
            "first": midnight(period.first, time_definition.timezone),
            "stop": midnight(period.stop, time_definition.timezone),
            "segments": list(page.segments),
        }
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters | more)
        rows: Sequence[Sequence[Any]] = cursor.fetchall()
        return rows

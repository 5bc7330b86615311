"""The grid on the page of a backfill: at every zoom, or the partitions one after the other."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from django.http import HttpRequest
from django.urls import reverse

import slicewise
from accounts_app.policy import Action, may
from assets_app.queries.clock import database_now
from assets_app.views.assets import can_be_materialized
from backfills_app.models import Backfill, BackfillAsset
from backfills_app.queries.cell_counts import cell_counts
from backfills_app.queries.partitions import (
    PartitionRow,
    first_failed_start,
    next_waiting_start,
    partitions_at,
    partitions_from,
)
from backfills_app.services.partitions.positions import Positions
from backfills_app.services.partitions.stored import stored_partitions
from backfills_app.views.progress import Progress
from partitions_app.grid.cells import Cell, Grid, room_for
from partitions_app.grid.extents import ChosenExtent
from partitions_app.grid.layouts import GridRequest, Layout, draw_chosen, layout_of
from partitions_app.grid.lists import list_of, longest_segment
from partitions_app.grid.periods import Clock, date_of
from partitions_app.grid.share_cells import Bucketed, ShareLooks
from partitions_app.labels import label_of
from partitions_app.state_badges import (
    MISSING,
    PARTITION_LOOKS,
    UNCLAIMED,
    badge_of,
    badge_of_backfill_partition,
)
from slicewise_server.web.listing import page_number

_LONGEST_WINDOW = len("2013-01-01T00:00+00:00|")
_MOST_RANGES = 2_000
_NO_LOOKS = ("stale", "not-yet-due", "late", "overdue")
_LEGEND = [
    UNCLAIMED if look == MISSING else look for look in PARTITION_LOOKS if look.name not in _NO_LOOKS
]
_LOOKS = ShareLooks(badge_of("succeeded"), badge_of("active"), UNCLAIMED)


# The states that a button selects.
SELECTED_STATES = ("failed", "canceled", "skipped")


class DrawnCells(NamedTuple):
    """A page of the grid of one asset, and the positions of the partitions that the page shows."""

    asset_row: BackfillAsset
    page: Layout
    grid: Grid
    ranges: Sequence[tuple[int, int]]


def cells_context(
    request: HttpRequest, backfill_row: Backfill, progress: Progress
) -> dict[str, Any]:
    """Return the context of the fragment with the grid of one of the assets."""
    asset_rows = list(backfill_row.assets.all())
    asset_row = _shown_asset(request, backfill_row, asset_rows)
    context = {
        "backfill": backfill_row,
        "cells_asset": asset_row,
        "cells_assets": asset_rows,
        "cells_version": progress.version,
        "cells_query": "?page=1",
        "grid": None,
        "looks": _LEGEND,
    }
    if asset_row is None or not asset_row.expanded:
        return context
    position = request.GET.get("from", "")
    if position.isdecimal() and len(position) < 10:
        return context | _listed(asset_row, int(position))
    try:
        partitions = stored_partitions(asset_row)
    except ValueError:
        # A selection of keys that the definition cannot read any more.
        return context | _listed(asset_row, 1)
    grid = _drawn(request, backfill_row, asset_row, partitions).grid
    exact_cells = [cell for cell in grid.cells if isinstance(cell, Cell)]
    return context | {
        "grid": grid,
        "select_buttons": grid.select_buttons(SELECTED_STATES),
        "may_select": may_select(request, asset_row),
        "cells_suffix": f"&backfill_asset={asset_row.pk}",
        "cells_query": grid.here,
        "cells_shown": len(exact_cells),
        "cells_first": exact_cells[0].label or exact_cells[0].key if exact_cells else "",
    }


def _shown_asset(
    request: HttpRequest, backfill_row: Backfill, asset_rows: Sequence[BackfillAsset]
) -> BackfillAsset | None:
    """Return the asset that the address names, or the first chosen one."""
    by_number = {str(asset_row.pk): asset_row for asset_row in asset_rows}
    chosen = [row for row in asset_rows if row.asset_id == backfill_row.asset_id]
    first_choice = by_number.get(request.GET.get("backfill_asset", ""))
    return first_choice or next(iter([*chosen, *asset_rows]), None)


def may_select(request: HttpRequest, asset_row: BackfillAsset) -> bool:
    """Return whether the person may materialize selected partitions of the asset."""
    asset = asset_row.asset
    is_partitioned = asset.partition_definition_id is not None
    return is_partitioned and may(request.user, Action.MATERIALIZE) and can_be_materialized(asset)


def drawn_cells(request: HttpRequest, backfill_row: Backfill) -> DrawnCells | None:
    """Return the page of the grid that an address names; None without readable partitions."""
    asset_row = _shown_asset(request, backfill_row, list(backfill_row.assets.all()))
    if asset_row is None or not asset_row.expanded:
        return None
    try:
        return _drawn(request, backfill_row, asset_row, stored_partitions(asset_row))
    except ValueError:
        return None


def _drawn(
    request: HttpRequest,
    backfill_row: Backfill,
    asset_row: BackfillAsset,
    partitions: slicewise.PartitionSet,
) -> DrawnCells:
    clock = Clock(database_now(), backfill_row.start_date)
    address = reverse("assets:asset", args=[asset_row.asset.name])
    extent = None
    if partitions.definition is not None:
        extent = ChosenExtent(partitions.definition, clock, len(address), chosen=partitions)
    at = request.GET.get("at", "") or _first_look(backfill_row, asset_row, extent)
    grid_request = GridRequest(request.GET.get("zoom", ""), at, page_number(request))
    page = layout_of(extent, grid_request, clock)
    rows: Sequence[PartitionRow] = ()
    counts: Bucketed = {}
    ranges = Positions(partitions).ranges(_needed(page, partitions))
    if page.counts_unit:
        counts = cell_counts(asset_row, page, ranges)
    else:
        rows = partitions_at(asset_row, ranges)
    cells = {row.key: _cell(row, partitions.definition) for row in rows}
    grid = draw_chosen(page, cells.get, counts, _LOOKS)
    suffixed = replace(grid, suffix=f"&backfill_asset={asset_row.pk}#partitions")
    return DrawnCells(asset_row, page, suffixed, ranges)


def _first_look(
    backfill_row: Backfill, asset_row: BackfillAsset, extent: ChosenExtent | None
) -> str:
    """Return the date of the next waiting partition, or else of the first failed one, or else of
    the first partition.
    """
    if extent is None or extent.time is None:
        return ""
    start = next_waiting_start(asset_row, backfill_row.order) or first_failed_start(asset_row)
    first, _ = extent.span
    day = date_of(start, extent.time.timezone) if start else first
    return day.isoformat()


def _needed(page: Layout, partitions: slicewise.PartitionSet) -> slicewise.PartitionSet:
    """Return the partitions that a page shows as cells, or counts in cells."""
    if not isinstance(page.extent, ChosenExtent):
        return partitions
    first, stop = page.segment_first, page.segment_first + len(page.segments)
    if page.counts_unit and page.period:
        # Some segments of many windows are too many ranges of positions: better too many rows.
        is_many = page.extent.window_count(page.period) > _MOST_RANGES
        return page.extent.within(page.period, *(() if is_many else (first, stop)))
    return page.extent.shown([window for window, _ in page.cells], first, stop)


def _cell(row: PartitionRow, definition: slicewise.PartitionDefinition | None) -> Cell:
    look = badge_of_backfill_partition(row.state, row.run_state)
    return Cell(look, row.key, label_of(definition, row.key), because=row.because)


def _listed(asset_row: BackfillAsset, number: int) -> dict[str, Any]:
    """Return the partitions from a number on, one after the other."""
    definition = asset_row.asset.definition
    # Each cell has the address of its asset, and the label beside the key.
    longest = "x" * (_LONGEST_WINDOW + len(asset_row.asset.name) // 3)
    size = room_for(
        longest + (longest_segment(definition) if definition is not None else ""), copies=4
    )
    page = partitions_from(asset_row, max(number - 1, 0), size)
    cells = [_cell(row, definition) for row in page.rows]
    first = max(number, 1)
    return {
        "grid": Grid("", list_of(cells), "list"),
        "cells_query": f"?from={first}",
        "cells_first": cells[0].label if cells else "",
        "cells_from": first,
        "cells_last": first - 1 + len(cells),
        "cells_previous": None if page.previous is None else page.previous + 1,
        "cells_next": None if page.following is None else page.following + 1,
    }

"""Selections in the grid of a backfill: the cells that a text names, and texts that select states.

A selection of partitions of a backfill leads to the forms of the asset: a retry of the backfill is
about all failed partitions.
"""

from dataclasses import replace
from functools import partial
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from accounts_app.policy import Action, may_for_assets
from assets_app.queries.clock import database_now
from assets_app.queries.grid_selection import (
    MOST_SELECTED,
    NO_MARKS,
    Marks,
    marks_of_selected,
    marks_on,
    selected_by_keys,
    selected_by_text,
    selection_error,
    short_text,
)
from assets_app.views.assets import can_be_backfilled
from assets_app.views.grid_marks import marks_answer
from backfills_app.models import Backfill, BackfillAsset
from backfills_app.queries.cell_counts import keys_in_state
from backfills_app.views.backfill_cells import (
    SELECTED_STATES,
    DrawnCells,
    drawn_cells,
    may_select,
)
from partitions_app.grid.cells import Cell
from partitions_app.grid.extents import ChosenExtent
from partitions_app.labels import example_selection
from slicewise.partitions import LONGEST_SELECTION
from slicewise_server.web.request_errors import InvalidRequest


@login_required
@require_safe
def backfill_marks(request: HttpRequest, pk: int) -> HttpResponse:
    """Return runs of selected cells and the number of selected partitions, or the error.

    With ``within`` in the address, the selection has only partitions of the backfill, and the
    answer has the text of the selection: the text of a range of cells, or of a month, names
    partitions between the partitions of the backfill too.
    """
    drawn = drawn_cells(request, get_object_or_404(Backfill.objects.recorded(), pk=pk))
    selection = request.GET.get("selection", "")
    if drawn is None:
        return marks_answer(lambda: NO_MARKS)
    if "within" in request.GET:
        return marks_answer(partial(_narrowed, drawn, selection))
    return marks_answer(partial(marks_on, drawn.page, drawn.grid, selection))


def _narrowed(drawn: DrawnCells, selection: str) -> Marks:
    """Return the marks and the text of the partitions of the backfill that a text selects."""
    extent = drawn.page.extent
    if not isinstance(extent, ChosenExtent) or not selection.strip():
        return replace(NO_MARKS, text="")
    selected = selected_by_text(extent.definition, selection) & extent.chosen
    marks = marks_of_selected(drawn.page, drawn.grid, selected)
    return replace(marks, text=short_text(selected))


def selection_context(
    request: HttpRequest, backfill_row: Backfill, asset_row: BackfillAsset | None
) -> dict[str, Any]:
    """Return the context of the form with the selection; empty without permission."""
    if asset_row is None or not may_select(request, asset_row):
        return {}
    asset, selection, error = asset_row.asset, request.GET.get("selection", ""), ""
    if (state := request.GET.get("select", "")) in SELECTED_STATES:
        try:
            selection = _selected_text(drawn_cells(request, backfill_row), state)
        except InvalidRequest as refused:
            selection, error = "", selection_error(refused)
    return {
        "has_selection": True,
        "may_backfill": can_be_backfilled(asset)
        and may_for_assets(request.user, Action.BACKFILL, [asset]),
        "example": example_selection(asset.definition, database_now()) if asset.definition else "",
        "selection": selection[:LONGEST_SELECTION],
        "selection_error": error,
    }


def _selected_text(drawn: DrawnCells | None, state: str) -> str:
    """Return a selection of the partitions of a page that have a state; empty for none."""
    if drawn is None or drawn.page.definition is None:
        return ""
    if drawn.page.counts_unit:
        keys = keys_in_state(drawn.asset_row, drawn.page, drawn.ranges, state, MOST_SELECTED + 1)
    else:
        cells = (cell for cell in drawn.grid.cells if isinstance(cell, Cell))
        keys = [cell.key for cell in cells if cell.counted_as == state]
    return short_text(selected_by_keys(drawn.page.definition, keys))

"""The tab of an asset with the grid of partitions, and the fragment of the grid that is polled."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts_app.policy import Action, may
from assets_app.models import Asset
from assets_app.queries.counted_selection import counted_selection
from assets_app.queries.grid import grid_page
from assets_app.queries.grid_selection import SELECTED_STATES, selected_text, selection_error
from partitions_app.grid.cells import Grid
from partitions_app.grid.layouts import GridRequest
from partitions_app.labels import example_selection
from partitions_app.state_badges import PARTITION_LOOKS
from slicewise.partitions import LONGEST_SELECTION
from slicewise_server.web.listing import page_number, unchanged, version_of
from slicewise_server.web.request_errors import InvalidRequest

_TEMPLATE = "assets_app/asset_partitions.html"


def grid_request(request: HttpRequest) -> GridRequest:
    """Return the page of the grid that an address names."""
    return GridRequest(request.GET.get("zoom", ""), request.GET.get("at", ""), page_number(request))


def partitions_tab(request: HttpRequest, asset: Asset, now: datetime) -> dict[str, Any]:
    """Return the context of the tab: the grid, and the selection that the address asks for."""
    page_request = grid_request(request)
    state, of_asset, error = request.GET.get("select", ""), None, ""
    # A link from another page names no page of the grid: the link means all such partitions.
    if {"zoom", "at", "page"}.isdisjoint(request.GET):
        try:
            of_asset = counted_selection(asset, state, now)
        except InvalidRequest as refused:
            state, error = "", selection_error(refused)
    if of_asset:
        page_request = GridRequest(at=of_asset.last_day)
    grid = grid_page(asset, page_request, now)
    context = _grid_context(grid) | {
        "may_add": asset.finds_partitions and may(request.user, Action.PARTITIONS),
        "example": example_selection(asset.definition, now) if asset.definition else "",
        "selection": request.GET.get("selection", "")[:LONGEST_SELECTION],
        "selection_error": error,
    }
    try:
        if of_asset:
            context["selection"] = of_asset.text
        elif state in SELECTED_STATES:
            context["selection"] = selected_text(asset, page_request, grid, state, now)
    except InvalidRequest as refused:
        context["selection_error"] = selection_error(refused)
    return context


def grid_poll(
    request: HttpRequest, asset: Asset, now: datetime, *, may_materialize: bool
) -> HttpResponse:
    """Return the grid alone; nothing where the polling page has the same cells. Markup, the larger
    part of the work, is made only for cells that have changed.
    """
    context = _grid_context(grid_page(asset, grid_request(request), now))
    if answer := unchanged(request, context["grid_version"]):
        return answer
    context |= {"asset": asset, "may_materialize": may_materialize}
    return render(request, f"{_TEMPLATE}#grid", context)


def _grid_context(grid: Grid) -> dict[str, Any]:
    """Return the context of the fragment of the grid."""
    return {
        "grid": grid,
        "grid_version": version_of(grid),
        "looks": PARTITION_LOOKS,
        "select_buttons": grid.select_buttons(SELECTED_STATES),
    }

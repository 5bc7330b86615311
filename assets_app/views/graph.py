"""The page of the asset graph: a picture that a script draws, and the same as a table."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.contrib.auth.decorators import login_required
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts_app.policy import Action, reach
from assets_app.models import Asset
from assets_app.queries.asset_graph import Neighbour, neighbours_of, reachable_ids
from assets_app.queries.clock import database_now
from assets_app.queries.graph_states import (
    NumberedState,
    graph_states,
    numbered_states,
)
from assets_app.views.assets import asset
from assets_app.views.graph_canvas import whole_graph
from slicewise_server.web.listing import page_of_rows

_ROWS = 25
DIRECTIONS = {"": "Upstream and downstream", "upstream": "Upstream", "downstream": "Downstream"}


@dataclass(frozen=True, slots=True)
class GraphRow:
    """One asset in the table: the numbers by state, and the edges."""

    asset: Asset
    states: list[NumberedState]
    upstream: list[Neighbour] = field(default_factory=list)
    downstream: list[Neighbour] = field(default_factory=list)


@login_required
@require_safe
def graph_or_asset(request: HttpRequest) -> HttpResponse:
    """Render the graph, or the page of the asset that has the name ``graph``."""
    if Asset.objects.filter(name="graph").exists():
        return asset(request, "graph")
    return graph(request)


@login_required
@require_safe
def graph(request: HttpRequest) -> HttpResponse:
    """Render the page of the graph."""
    page = page_of_rows(request, _matching(request), _ROWS)
    context = {
        "page": page,
        "rows": _rows(page.items),
        **whole_graph(),
        "directions": DIRECTIONS,
        "direction": request.GET.get("direction", ""),
        "filtered": any(request.GET.get(name) for name in ("q", "around")),
        "any_asset": bool(page.items) or Asset.objects.filter(active=True).exists(),
        "may_backfill": bool(reach(request.user, Action.BACKFILL)),
    }
    return render(request, "assets_app/graph.html", context)


def _matching(request: HttpRequest) -> QuerySet[Asset]:
    rows = Asset.objects.declared()
    around = rows.filter(name=request.GET.get("around", "")).first()
    if around is not None:
        rows = rows.filter(pk__in=reachable_ids(around, request.GET.get("direction", "")))
    if text := request.GET.get("q", "").strip():
        rows = rows.filter(Q(name__icontains=text) | Q(group__icontains=text))
    return rows.order_by("name")


def _rows(assets: Sequence[Asset]) -> list[GraphRow]:
    if not assets:
        return []
    states = graph_states(assets, database_now())
    upstream, downstream = neighbours_of(assets)
    return [
        GraphRow(
            asset_row,
            numbered_states(states.counts[asset_row.name]),
            upstream.get(asset_row.pk, []),
            downstream.get(asset_row.pk, []),
        )
        for asset_row in assets
    ]

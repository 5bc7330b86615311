"""The impact of a change of some partitions of an asset: the downstream partitions that become
stale, beside the upstream partitions that these partitions read.
"""

from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

import slicewise
from accounts_app.policy import Action, may, may_for_assets
from assets_app.execution.request.requests import preview_selection
from assets_app.models import Asset
from assets_app.queries.asset_graph import reach_counts
from assets_app.queries.clock import database_now
from assets_app.queries.graph_states import graph_states, numbered_states
from assets_app.queries.impact import impact_of
from assets_app.queries.upstream_reads import upstream_reads
from assets_app.views.assets import asset_for_page, can_be_backfilled, can_be_materialized
from partitions_app.labels import example_selection
from slicewise.keys import WHOLE
from slicewise_server.web.request_errors import InvalidRequest

_TEMPLATE = "assets_app/impact.html"
# Fragments of the page that scripts ask for.
_FRAGMENTS = ("panel", "impact")


@login_required
@require_safe
def impact(request: HttpRequest, name: str) -> HttpResponse:
    """Render the assets and partitions that a change of the selected partitions makes stale, and
    the upstream partitions that the selected partitions read.
    """
    asset = asset_for_page(name)
    selection = request.GET.get("selection", "").strip()
    fragment = request.GET.get("fragment", "")
    context = _impact_context(asset, selection) | _rights(request, asset)
    if fragment != "impact":
        context |= _asset_context(asset)
    template = f"{_TEMPLATE}#{fragment}" if fragment in _FRAGMENTS else _TEMPLATE
    return render(request, template, context)


def _asset_context(asset: Asset) -> dict[str, Any]:
    now = database_now()
    counts = graph_states([asset], now).counts[asset.name] if asset.active else {}
    return {
        "states": numbered_states(counts),
        "reach": reach_counts(asset),
        "example": example_selection(asset.definition, now) if asset.definition else "",
    }


def _rights(request: HttpRequest, asset: Asset) -> dict[str, bool]:
    return {
        "may_materialize": may(request.user, Action.MATERIALIZE) and can_be_materialized(asset),
        "may_backfill": can_be_backfilled(asset)
        and may_for_assets(request.user, Action.BACKFILL, [asset]),
    }


def _impact_context(asset: Asset, selection: str) -> dict[str, Any]:
    context: dict[str, Any] = {"asset": asset, "selection": selection}
    try:
        chosen = _chosen(asset, selection)
    except InvalidRequest as refused:
        return context | {"errors": refused.errors.get("selection", [str(refused)])}
    now = database_now()
    return context | {
        "chosen": chosen,
        "impact": impact_of(asset, chosen, now),
        "upstream": upstream_reads(asset, chosen, now),
        # A change asks for new data of partitions that exist.
        "backfill_query": urlencode(
            {"asset": asset.name, "selection": selection, "downstream": "all", "existing": "all"}
        ),
    }


def _chosen(asset: Asset, selection: str) -> slicewise.PartitionSet | None:
    """Return the selected partitions; None before any are selected.

    Raises InvalidRequest.
    """
    if asset.definition is None and not selection:
        return slicewise.PartitionSet.of(None, [WHOLE])
    return preview_selection(asset, selection) if selection else None

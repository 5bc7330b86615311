"""The pages of assets: the list, and the page of one asset."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts_app.policy import Action, may, may_for_assets
from assets_app.models import Asset, Run
from assets_app.queries.counts import failed_counts
from assets_app.queries.grid import grid_page
from assets_app.queries.orphans import materialized_total, orphan_count
from assets_app.queries.overview import asset_statuses
from assets_app.queries.pages import import_error_of, neighbours
from assets_app.views.schedules import schedule_tab
from partitions_app.grid.layouts import GridRequest
from partitions_app.labels import example_selection
from partitions_app.rules import has_time
from partitions_app.state_badges import PARTITION_LOOKS
from slicewise.texts import masked_text, masked_uri
from slicewise_server.web.listing import page_number, page_of_rows

ORDERS = {"name": "Name", "-activated_at": "Newest", "group": "Group"}
SHOWN = {
    "": "All assets",
    "failed": "Failed",
    "paused": "Paused",
    "gone": "Removed",
}
TABS = ("partitions", "runs", "schedule", "neighbours", "definition")


@login_required
@require_safe
def assets(request: HttpRequest) -> HttpResponse:
    """Render the list of assets, with the status of each asset."""
    page = page_of_rows(request, _matching(request), 40)
    context = {
        "page": page,
        "standings": asset_statuses(page.items) if page.items else [],
        "orders": ORDERS,
        "shown": SHOWN,
        "filtered": any(request.GET.get(name) for name in ("q", "show")),
        "any_asset": bool(page.items) or Asset.objects.exists(),
    }
    return render(request, "assets_app/assets.html", context)


@login_required
@require_safe
def asset(request: HttpRequest, name: str) -> HttpResponse:
    """Render the page of one asset: the status, and one tab."""
    rows = _as_shown().annotate(materialized_total=materialized_total())
    asset_row = get_object_or_404(rows, name=name)
    tab = request.GET.get("tab", "")
    tab = tab if tab in TABS else "partitions"
    status = asset_statuses([asset_row])[0]
    context = {
        "asset": asset_row,
        "standing": status,
        "orphans": orphan_count(asset_row, status.materialized),
        "tab": tab,
        "import_error": import_error_of(asset_row),
        "may_materialize": may(request.user, Action.MATERIALIZE) and can_be_materialized(asset_row),
        "may_backfill": can_be_backfilled(asset_row)
        and may_for_assets(request.user, Action.BACKFILL, [asset_row]),
        "may_report": may(request.user, Action.REPORT) and is_external(asset_row),
    }
    return render(
        request, f"assets_app/asset_{tab}.html", context | _TAB_CONTEXT[tab](request, asset_row)
    )


def asset_for_page(name: str) -> Asset:
    """Return the asset of that name for a page, also if no longer declared; or raise 404."""
    return get_object_or_404(_as_shown(), name=name)


def _as_shown() -> QuerySet[Asset]:
    """Return the assets with the values that pages of assets show."""
    return Asset.objects.select_related(
        "partition_definition",
        "producer__current_version",
        "producer__schedule",
        "bundle__current_version",
    ).defer("bundle__current_version__archive")


def can_be_materialized(asset: Asset) -> bool:
    """Return whether a function materializes the asset at present."""
    return (
        asset.active and asset.producer is not None and asset.producer.current_version is not None
    )


def is_external(asset: Asset) -> bool:
    """Return whether another program writes the asset and reports the writes."""
    return asset.active and asset.producer_id is None


def can_be_backfilled(asset: Asset) -> bool:
    """Return whether the asset can be materialized and has a dimension of time."""
    return can_be_materialized(asset) and has_time(asset.definition)


def _matching(request: HttpRequest) -> QuerySet[Asset]:
    rows = Asset.objects.select_related("partition_definition", "producer__schedule")
    show = request.GET.get("show", "")
    rows = rows.filter(active=show != "gone")
    if show == "paused":
        rows = rows.filter(paused=True)
    if show == "failed":
        rows = rows.filter(pk__in=list(failed_counts()))
    if text := request.GET.get("q", "").strip():
        rows = rows.filter(
            Q(name__icontains=text) | Q(group__icontains=text) | Q(description__icontains=text)
        )
    order = request.GET.get("sort", "")
    return rows.order_by(order if order in ORDERS else "name", "name")


def _partitions(request: HttpRequest, asset: Asset) -> dict[str, Any]:
    grid_request = GridRequest(
        request.GET.get("zoom", ""), request.GET.get("at", ""), page_number(request)
    )
    now = timezone.now()
    return {
        "grid": grid_page(asset, grid_request, now),
        "looks": PARTITION_LOOKS,
        "may_add": asset.finds_partitions and may(request.user, Action.PARTITIONS),
        "example": example_selection(asset.definition, now) if asset.definition else "",
    }


def _runs(request: HttpRequest, asset: Asset) -> dict[str, Any]:
    return {"page": page_of_rows(request, Run.objects.listed().making(asset).order_by("-id"))}


def _neighbours(request: HttpRequest, asset: Asset) -> dict[str, Any]:
    upstream, downstream = neighbours(asset)
    return {"upstream": upstream, "downstream": downstream}


def _declared_validations(asset: Asset) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the phase, the asset's name and the loader's record of each declared validation."""
    version = asset.producer.current_version if asset.producer else None
    inlets = version.spec.inlet_validations if version else {}
    before = [
        ("inlet", name, validation)
        for name, validations in inlets.items()
        for validation in validations
    ]
    return [
        *before,
        *(("outlet", asset.name, validation) for validation in asset.outlet_validations),
    ]


def _definition(request: HttpRequest, asset: Asset) -> dict[str, Any]:
    producer = asset.producer
    version = producer.current_version if producer else None
    same_uri = Asset.objects.filter(canonical_uri=asset.canonical_uri, active=True)
    return {
        "version": version,
        "uri": masked_uri(asset.uri),
        # Decorators are part of the source, and so are the URIs in them.
        "source": masked_text(version.source) if version else "",
        "rule": repr(asset.definition) if asset.partition_definition else "",
        "validations": _declared_validations(asset),
        "sharing": same_uri.exclude(pk=asset.pk) if asset.canonical_uri else [],
    }


_TAB_CONTEXT = {
    "partitions": _partitions,
    "runs": _runs,
    "schedule": schedule_tab,
    "neighbours": _neighbours,
    "definition": _definition,
}

"""The page of one asset, and the assets that pages show."""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from accounts_app.policy import Action, may, may_for_assets
from assets_app.models import Asset, Run
from assets_app.queries.asset_graph import neighbours_of
from assets_app.queries.asset_pauses import pause_of
from assets_app.queries.orphans import materialized_total, orphan_count
from assets_app.queries.overview import AssetStatus, asset_statuses
from assets_app.queries.pages import import_error_of
from assets_app.queries.run_durations import duration_chart
from assets_app.views.declaration_tabs import definition_tab, settings_tab, validations_tab
from assets_app.views.graph_canvas import neighbourhood_graph
from assets_app.views.partitions_tab import grid_poll, partitions_tab
from assets_app.views.schedules import schedule_tab
from assets_app.views.status_versions import next_tick, version_of_statuses
from partitions_app.rules import has_time
from slicewise_server.web.listing import page_of_rows, unchanged
from slicewise_server.web.live_fragments import is_poll, render_live

TABS = (
    "partitions", "runs", "schedule", "neighbours", "validations", "settings", "definition",
)  # fmt: skip
_PARTITIONS = "partitions"
_LIVE_TABS = ("runs", "schedule")


@login_required
@require_safe
def asset(request: HttpRequest, name: str) -> HttpResponse:
    """Render the page of one asset: the status, and one tab."""
    # The present comes with the row, without a statement of its own.
    rows = _as_shown().annotate(materialized_total=materialized_total(), read_at=Now())
    asset_row = get_object_or_404(rows, name=name)
    now: datetime = vars(asset_row)["read_at"]
    may_materialize = may(request.user, Action.MATERIALIZE) and can_be_materialized(asset_row)
    if is_poll(request) and request.GET.get("fragment") == "grid":
        return grid_poll(request, asset_row, now, may_materialize=may_materialize)
    tab = request.GET.get("tab", "")
    tab = tab if tab in TABS else _PARTITIONS
    status = asset_statuses([asset_row], strips=False, now=now)[0]
    orphans = orphan_count(asset_row, status.materialized)
    pause = pause_of(asset_row)
    declared = (asset_row.description, asset_row.owners, asset_row.active)
    head_version = version_of_statuses(
        [status], now, orphans, declared, pause, _minutes_left(status, now)
    )
    head = {
        "asset": asset_row,
        "pause": pause,
        "asset_status": status,
        "orphans": orphans,
        "head_version": head_version,
    }
    if is_poll(request) and request.GET.get("fragment") == "head":
        answer = unchanged(request, head_version)
        return answer or render(request, "assets_app/asset.html#head", head)
    context = head | {
        "tab": tab,
        "import_error": import_error_of(asset_row),
        "may_materialize": may_materialize,
        "may_backfill": can_be_backfilled(asset_row)
        and may_for_assets(request.user, Action.BACKFILL, [asset_row]),
        "may_report": may(request.user, Action.REPORT) and is_external(asset_row),
    }
    context |= (
        partitions_tab(request, asset_row, now)
        if tab == _PARTITIONS
        else _TAB_CONTEXT[tab](request, asset_row)
    )
    if tab in _LIVE_TABS:
        return render_live(request, f"assets_app/asset_{tab}.html", "live_tab", context)
    return render(request, f"assets_app/asset_{tab}.html", context)


def _minutes_left(status: AssetStatus, now: datetime) -> int | None:
    """Return the whole minutes until the next tick, which the head of the page shows in words."""
    next_at = next_tick(status)
    return None if next_at is None else (next_at - now) // timedelta(minutes=1)


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
        "freshness_watch",
    ).defer("bundle__current_version__archive")


def can_be_materialized(asset: Asset) -> bool:
    """Return whether a function materializes the asset at present."""
    return (
        asset.active
        and asset.producer is not None
        and asset.producer.current_version_id is not None
    )


def is_external(asset: Asset) -> bool:
    """Return whether another program writes the asset and reports the writes."""
    return asset.active and asset.producer_id is None


def can_be_backfilled(asset: Asset) -> bool:
    """Return whether the asset can be materialized and has a dimension of time."""
    return can_be_materialized(asset) and has_time(asset.definition)


def _runs(request: HttpRequest, asset: Asset) -> dict[str, Any]:
    return {
        "page": page_of_rows(request, Run.objects.listed().materializing(asset).order_by("-id")),
        "durations": duration_chart(asset),
    }


def _neighbours(request: HttpRequest, asset: Asset) -> dict[str, Any]:
    upstream, downstream = neighbours_of([asset])
    return {
        "upstream": upstream.get(asset.pk, []),
        "downstream": downstream.get(asset.pk, []),
        **neighbourhood_graph(asset),
    }


_TAB_CONTEXT = {
    "runs": _runs,
    "schedule": schedule_tab,
    "neighbours": _neighbours,
    "validations": validations_tab,
    "settings": settings_tab,
    "definition": definition_tab,
}

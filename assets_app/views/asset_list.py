"""The list of assets, searched, filtered and sorted by the address."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from django.contrib.auth.decorators import login_required
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts_app.policy import Action, may
from assets_app.models import Asset, Schedule
from assets_app.queries.clock import database_now
from assets_app.queries.counts import assets_in_progress, failed_counts
from assets_app.queries.declared_facts import FACTS, having_facts, offered_facts
from assets_app.queries.overdue import overdue_by_asset
from assets_app.queries.overview import AssetStatus, asset_statuses
from assets_app.queries.stale_counts import stale_counts_of_all
from assets_app.queries.ticks import FAILING, overdue_schedules
from assets_app.views.status_versions import version_of_statuses
from slicewise_server.web.listing import address_of, page_of_rows, unchanged
from slicewise_server.web.live_fragments import is_poll

# The choice of assets that no file declares any more; all others select declared assets.
_REMOVED = "gone"
ORDERS = {"name": "Name", "-activated_at": "Newest", "group": "Group"}


class Shown(NamedTuple):
    """A choice of the form: the label, the assets that the choice selects, and what the choice
    means, for a list without assets.
    """

    label: str
    matching: Callable[[], Q] = Q
    meaning: str = ""


SHOWN = {
    "": Shown("All assets"),
    "failed": Shown("Failed", lambda: Q(pk__in=list(failed_counts()))),
    "overdue": Shown("Overdue", lambda: Q(pk__in=list(overdue_by_asset(database_now())))),
    "stale": Shown("Stale", lambda: Q(pk__in=list(stale_counts_of_all()))),
    "queued": Shown("Queued", lambda: Q(pk__in=assets_in_progress(queued=True))),
    "running": Shown("Running", lambda: Q(pk__in=assets_in_progress(queued=False))),
    "paused": Shown("Paused", lambda: Q(paused=True)),
    "late": Shown(
        "Overdue tick (schedule not evaluated)",
        lambda: Q(producer__schedule__in=overdue_schedules(database_now())),
        "No process has evaluated the schedule of a listed asset, and the time of the tick has"
        " passed. The choice Overdue lists assets with overdue partitions.",
    ),
    "failing": Shown(
        "Failing schedule (evaluation error)",
        lambda: FAILING,
        "The evaluation of the schedule of a listed asset ends with an error. The choice Failed"
        " lists assets with failed partitions.",
    ),
    _REMOVED: Shown("Removed"),
}
FILTERS = ("q", "show", *FACTS)
_PAGE = 40


class FactFilter(NamedTuple):
    """A filter by a declared fact, with the values that the form offers."""

    name: str
    label: str
    value: str
    offered: Sequence[str]


@login_required
@require_safe
def assets(request: HttpRequest) -> HttpResponse:
    """Render the list of assets, with the status of each asset; only the rows for a poll."""
    page = page_of_rows(request, _matching(request), _PAGE)
    now = database_now()
    statuses = asset_statuses(page.items, now=now) if page.items else []
    version = version_of_statuses(statuses, now, page.has_next, _declared(statuses))
    if is_poll(request) and (answer := unchanged(request, version)):
        return answer
    context = {
        "page": page,
        "asset_statuses": statuses,
        "filtered": any(request.GET.get(name) for name in FILTERS),
        "meaning": shown.meaning if (shown := SHOWN.get(request.GET.get("show", ""))) else "",
        "version": version,
        "again": address_of(request, (*FILTERS, "sort", "page")),
        "has_facts": any(row.owners or row.tags for row in page.items),
        "may_pause": may(request.user, Action.PAUSE),
    }
    if is_poll(request):
        return render(request, "assets_app/assets.html#listed", context)
    return render(request, "assets_app/assets.html", context | _form_context(request, page.items))


def _form_context(request: HttpRequest, listed: Sequence[Asset]) -> dict[str, object]:
    """Return the context of the form above the list."""
    facts = _fact_filters(request)
    return {
        "orders": ORDERS,
        "shown": {name: shown.label for name, shown in SHOWN.items()},
        "any_asset": bool(listed) or Asset.objects.exists(),
        "facts": facts,
        "shows_more": any(fact.value for fact in facts),
    }


def _fact_filters(request: HttpRequest) -> list[FactFilter]:
    """Return a filter for each fact that an asset has; also a filter in use that no asset has."""
    offered = offered_facts(_declared_now(request))
    filters = []
    for fact in FACTS:
        value = request.GET.get(fact, "")
        is_listed = not value or value in offered[fact]
        values = offered[fact] if is_listed else [value, *offered[fact]]
        if values:
            filters.append(FactFilter(fact, fact.capitalize(), value, values))
    return filters


def _declared(statuses: Sequence[AssetStatus]) -> list[tuple[object, ...]]:
    """Return the declared values that the list shows, which a sync changes."""
    shown = [status.asset for status in statuses]
    return [
        (asset.group, asset.kind, asset.owners, asset.tags, asset.description, _rule_of(asset))
        for asset in shown
    ]


def _rule_of(asset: Asset) -> object:
    return None if (row := Schedule.of(asset)) is None else row.rule


def _declared_now(request: HttpRequest) -> QuerySet[Asset]:
    """Select the assets that a file declares, or where the address says so the removed ones."""
    return Asset.objects.filter(active=request.GET.get("show") != _REMOVED)


def _matching(request: HttpRequest) -> QuerySet[Asset]:
    rows = _declared_now(request).select_related("partition_definition", "producer__schedule")
    if shown := SHOWN.get(request.GET.get("show", "")):
        rows = rows.filter(shown.matching())
    if text := request.GET.get("q", "").strip():
        rows = rows.filter(
            Q(name__icontains=text) | Q(group__icontains=text) | Q(description__icontains=text)
        )
    rows = having_facts(rows, {fact: text for fact in FACTS if (text := request.GET.get(fact, ""))})
    order = request.GET.get("sort", "")
    return rows.order_by(order if order in ORDERS else "name", "name")

"""The list of backfills, which is searched, filtered and sorted by its address."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from backfills_app.models import ENDED_STATES, FAILED_STATES, Backfill, BackfillState
from backfills_app.views.allowed import reaches_of
from backfills_app.views.progress import progress_with_pace
from slicewise_server.web.listing import address_of, page_of_rows, unchanged, version_of

FILTERS = ("q", "asset", "state", "person", "sort")
SORTS = {
    "": "Newest first",
    "oldest": "Oldest first",
    "updated": "Recently updated",
    "asset": "Asset",
    "state": "State",
}
_ORDERS = {
    "oldest": ("id",),
    "updated": ("-updated_at", "-id"),
    "asset": ("asset__name", "-id"),
    "state": ("state", "-id"),
}
UNFINISHED = "unfinished"
ANY_FAILED = "any_failed"
DELETED = "deleted"
_PAGE = 30


@login_required
@require_safe
def backfills(request: HttpRequest) -> HttpResponse:
    """Show all backfills, newest first."""
    context = _list_context(request) | {
        "states": [
            (UNFINISHED, "Active"),
            *BackfillState.choices,
            (ANY_FAILED, "Failed or partially failed"),
            (DELETED, "Deleted"),
        ],
        "sorts": SORTS,
    }
    return render(request, "backfills_app/backfills.html", context)


@login_required
@require_safe
def backfills_listed(request: HttpRequest) -> HttpResponse:
    """Show the fragment of the list that updates itself."""
    context = _list_context(request)
    if answer := unchanged(request, context["version"]):
        return answer
    return render(request, "backfills_app/backfills.html#listed", context)


def _list_context(request: HttpRequest) -> dict[str, Any]:
    page = page_of_rows(request, matching(request), _PAGE)
    reaches = reaches_of(request)
    progress = progress_with_pace(page.items)
    rows = [(row_progress, reaches.over(row_progress)) for row_progress in progress]
    shown = [
        (row_progress.version, row_progress.rate, row_progress.backfill.description)
        for row_progress in progress
    ]
    return {
        "page": page,
        "rows": rows,
        "bulk": any(allowed.anything for _, allowed in rows),
        "version": version_of((shown, page.has_next)),
        "filtered": any(request.GET.get(name) for name in FILTERS if name != "sort"),
        "again": address_of(request, (*FILTERS, "page")),
        "may_backfill": bool(reaches.backfill),
    }


def matching(request: HttpRequest) -> QuerySet[Backfill]:
    """Return the backfills that match the filters of the address, in the order of the address."""
    state = request.GET.get("state", "")
    rows = Backfill.objects.recorded() if state == DELETED else Backfill.objects.listed()
    if state == DELETED:
        rows = rows.filter(deleted=True)
    elif state == UNFINISHED:
        rows = rows.exclude(state__in=ENDED_STATES)
    elif state == ANY_FAILED:
        rows = rows.filter(state__in=FAILED_STATES)
    elif state:
        rows = rows.filter(state=state)
    if text := request.GET.get("q", "").strip():
        rows = rows.filter(Q(name__icontains=text) | Q(description__icontains=text))
    if asset := request.GET.get("asset", "").strip():
        # Also backfills that materialize the asset upstream or downstream of the chosen ones.
        rows = rows.filter(pk__in=_ids_with_asset(asset))
    if person := request.GET.get("person", "").strip():
        rows = rows.filter(submitted_by__username__icontains=person)
    return rows.order_by(*_ORDERS.get(request.GET.get("sort", ""), ("-id",)))


def _ids_with_asset(name: str) -> QuerySet[Backfill, Any]:
    return Backfill.objects.filter(assets__asset__name__icontains=name).values("pk")

"""The page of lineage: events to send, writes of other tools, and edges between datasets."""

import os
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.db.models import Q, QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from assets_app.queries.clock import database_now
from assets_app.queries.lookups import asset_named
from slicewise_server.lineage.client_settings import sends_events
from slicewise_server.lineage.edges_of_datasets import MOST_EDGES
from slicewise_server.lineage.models import (
    LineageEdge,
    LineageEvent,
    LineageReceiver,
    ReceivedWrite,
    TruncatedJob,
)
from slicewise_server.lineage.outbox import UnwrittenStarts, unwritten_starts
from slicewise_server.lineage.transport_settings import is_disabled, receiver_name
from slicewise_server.web.listing import page_of_rows, unchanged, version_of

_TABS = (("sent", "Events"), ("received", "Received writes"), ("edges", "Edges"))
_STATES = (("waiting", "Waiting"), ("refused", "Refused"), ("sent", "Sent"))
# More waiting events than this are shown as "10,000 or more".
_MOST_COUNTED = 10_000
_MOST_EDGES = 50
_MOST_JOBS = 5
_SIZE = 25
_SHOWN_CHARACTERS = 250
# Events are sent every five seconds, many at once.
_LATE_AFTER = timedelta(minutes=5)


@login_required
@require_safe
def lineage(request: HttpRequest) -> HttpResponse:
    """Render the newest events, writes or edges, and the state of the receiver."""
    return render(request, "lineage/lineage.html", _context(request))


@login_required
@require_safe
def lineage_listed(request: HttpRequest) -> HttpResponse:
    """Render the part of the page that polling replaces: everything but the frame."""
    context = _context(request)
    if answer := unchanged(request, context["version"]):
        return answer
    return render(request, "lineage/lineage.html#listed", context)


@login_required
@require_safe
def asset_edges(request: HttpRequest, name: str) -> HttpResponse:
    """Render the edges of one asset that other tools have reported, for the asset's own page."""
    asset = asset_named(name)
    rows = list(_edges_of(asset.name)[: _MOST_EDGES + 1])
    context = {"edges": rows[:_MOST_EDGES], "has_more": len(rows) > _MOST_EDGES, "asset": asset}
    return render(request, "lineage/asset_edges.html", context)


def _context(request: HttpRequest) -> dict[str, Any]:
    names = [name for name, _ in _TABS]
    tab = request.GET.get("tab", "")
    tab = tab if tab in names else names[0]
    page = page_of_rows(request, _rows(tab, request), size=_SIZE)
    receiver = LineageReceiver.objects.filter(pk=LineageReceiver.ROW_ID).first()
    waiting = LineageEvent.objects.filter(sent_at__isnull=True).order_by()
    # A sender that does not run writes no starts either.
    starts = unwritten_starts() if sends_events() else UnwrittenStarts(0, None)
    waiting_count = min(waiting[:_MOST_COUNTED].count() + starts.number, _MOST_COUNTED)
    # A refused event waits for its next try.
    unsent = waiting.filter(not_before__isnull=True).order_by("id")
    oldest_event_at = unsent.values_list("at", flat=True).first()
    oldest_at = min(filter(None, (oldest_event_at, starts.oldest_at)), default=None)
    is_late = oldest_at is not None and oldest_at < database_now() - _LATE_AFTER
    truncated_jobs = list(TruncatedJob.objects.all()[: _MOST_JOBS + 1]) if tab == "edges" else []
    polled_values = [
        waiting_count,
        is_late,
        oldest_at,
        [(row.pk, row.number) for row in truncated_jobs],
        receiver and (receiver.failures, receiver.error),
        [_polled(row) for row in page.items],
    ]
    return {
        "tab": tab,
        "tabs": _TABS,
        "states": _STATES,
        "page": page,
        "truncated_jobs": truncated_jobs[:_MOST_JOBS],
        "more_truncated_jobs": len(truncated_jobs) > _MOST_JOBS,
        "most_edges": MOST_EDGES,
        "receiver": receiver,
        "sends_events": sends_events(),
        "is_disabled": is_disabled(os.environ),
        "receiver_name": receiver_name(os.environ),
        "waiting_count": waiting_count,
        "oldest_at": oldest_at,
        "is_late": is_late,
        "waiting_beyond": waiting_count == _MOST_COUNTED,
        "namespace": settings.OPENLINEAGE_NAMESPACE,
        "version": version_of(polled_values),
    }


def _rows(tab: str, request: HttpRequest) -> QuerySet[Any]:
    if tab == "received":
        # A selection may have a million characters, of which the page shows the beginning.
        writes = ReceivedWrite.objects.select_related("asset").defer("selection")
        return writes.annotate(shown_selection=Left("selection", _SHOWN_CHARACTERS))
    if tab == "edges":
        return _edges_of(request.GET.get("asset", ""))
    events = LineageEvent.objects.select_related("attempt__run__asset").order_by("-id")
    # Of a function that makes several assets, all are named.
    events = events.prefetch_related("attempt__run__asset__producer__assets")
    match request.GET.get("state"):
        case "waiting":
            return events.filter(sent_at__isnull=True)
        case "refused":
            return events.filter(sent_at__isnull=True, refusals__gt=0)
        case "sent":
            return events.filter(sent_at__isnull=False)
    return events


def _edges_of(name: str) -> QuerySet[LineageEdge]:
    """Select the edges of an asset; without a name, all edges."""
    edges = LineageEdge.objects.select_related("upstream", "downstream")
    if not name:
        return edges
    return edges.filter(Q(upstream__name=name) | Q(downstream__name=name))


def _polled(row: LineageEvent | ReceivedWrite | LineageEdge) -> tuple[object, ...]:
    """Return the values of a row that the page shows and that may change."""
    match row:
        case LineageEvent():
            return row.pk, row.sent_at, row.refusals
        case ReceivedWrite():
            return row.pk, row.report_id, row.problem
    return row.pk, row.last_seen_at

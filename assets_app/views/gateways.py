"""The page of the workers that execute runs, with runs and last heartbeats."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from assets_app.models import Gateway, Queue, Run, RunState
from assets_app.models.gateways import GatewayState
from assets_app.queries.clock import database_now
from assets_app.queries.gateways import GatewayStatus, gateway_statuses, troubled_first
from assets_app.queries.queue_waits import oldest_wait_of
from slicewise_server.web.listing import unchanged, version_of


@login_required
@require_safe
def gateways(request: HttpRequest) -> HttpResponse:
    """Render all workers that have ever registered, workers in trouble first."""
    return render(request, "assets_app/gateways.html", _context())


@login_required
@require_safe
def gateways_listed(request: HttpRequest) -> HttpResponse:
    """Render the part of the page that polling replaces: everything but the frame."""
    context = _context()
    if answer := unchanged(request, context["version"]):
        return answer
    return render(request, "assets_app/gateways.html#listed", context)


def _context() -> dict[str, Any]:
    now = database_now()
    rows = troubled_first(gateway_statuses(list(Gateway.objects.all()), now), now)
    queued = Run.objects.filter(state=RunState.QUEUED)
    queues = [
        {
            "name": queue.value,
            "label": queue.label,
            "slots": sum(row.gateway.slots for row in _working(rows, queue)),
            "free": sum(row.free for row in _working(rows, queue)),
            "waiting": queued.filter(queue=queue).count(),
            "oldest": oldest_wait_of(queue, now),
        }
        for queue in Queue
    ]
    polled_values = [
        (
            row.gateway.pk,
            row.state,
            row.gateway.slots,
            row.gateway.started_at,
            row.gateway.spark_away_since,
            _runs(row),
        )
        for row in rows
    ]
    return {
        "rows": rows,
        "queues": queues,
        "version": version_of((polled_values, queues)),
    }


def _working(rows: list[GatewayStatus], queue: Queue) -> list[GatewayStatus]:
    return [row for row in rows if row.gateway.queue == queue and row.state == GatewayState.WORKING]


def _runs(row: GatewayStatus) -> list[int]:
    return [attempt.run_id for attempt in row.attempts]

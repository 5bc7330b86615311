"""What needs a person now, and what is going on."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.db.models import Count, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from assets_app.models import TERMINAL_STATES, Asset, Gateway, PartitionCount, Run, RunState
from assets_app.queries.pages import broken_bundles
from assets_app.views.listing import unchanged
from backfills_app.models import ENDED_STATES, Backfill
from backfills_app.views.progress import Progress, progress_of


@login_required
@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    """The first page."""
    now = timezone.now()
    failed = PartitionCount.objects.filter(state="failed", count__gt=0, asset__active=True)
    fresh = now - timedelta(seconds=2 * settings.LEASE_SECONDS)
    context = {
        "failed": list(
            failed.values("asset__name").annotate(number=Sum("count")).order_by("-number")[:10]
        ),
        "failed_runs": Run.objects.listed().filter(state=RunState.FAILED).order_by("-ended_at")[:8],
        "broken": broken_bundles(),
        "gateways": [(gateway, gateway.last_seen >= fresh) for gateway in Gateway.objects.all()],
        "any_asset": Asset.objects.filter(active=True).exists(),
        **_moving(),
    }
    return render(request, "backfills_app/overview.html", context)


@login_required
@require_safe
def going_on(request: HttpRequest) -> HttpResponse:
    """The part of the overview that changes by itself."""
    context = _moving()
    if answer := unchanged(request, context["version"]):
        return answer
    return render(request, "backfills_app/overview.html#moving", context)


def _moving() -> dict[str, Any]:
    backfills = Backfill.objects.listed().exclude(state__in=ENDED_STATES).order_by("-id")[:10]
    running: list[Progress] = [progress_of(backfill) for backfill in backfills]
    unfinished = Run.objects.exclude(state__in=TERMINAL_STATES).order_by()
    counted = dict(unfinished.values_list("state").annotate(number=Count("pk")))
    runs = [(state.value, counted[state]) for state in RunState if state in counted]
    version = "-".join([*(one.version for one in running), *(f"{s}{n}" for s, n in runs)])
    return {"running": running, "runs": runs, "version": version or "nothing"}

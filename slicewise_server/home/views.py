"""The overview: problems that need a person now, and active work."""

from typing import Any
from zlib import crc32

from django.contrib.auth.decorators import login_required
from django.db.models import Count
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from assets_app.models import TERMINAL_STATES, Asset, Gateway, Run, RunState
from assets_app.queries.counts import failed_counts
from assets_app.queries.pages import broken_bundles
from assets_app.queries.ticks import left_out_lately
from backfills_app.models import ENDED_STATES, Backfill
from backfills_app.views.progress import Progress, progress_of
from slicewise_server.web.listing import unchanged

_VERSIONS = ("needs_version", "gateways_version", "going_on_version")


@login_required
@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    """Show the first page."""
    return render(request, "home/overview.html", _overview_context())


@login_required
@require_safe
def going_on(request: HttpRequest) -> HttpResponse:
    """Show the fragment of the overview that updates itself: all of the page but the frame."""
    context = _overview_context()
    if answer := unchanged(request, context["version"]):
        return answer
    return render(request, "home/overview.html#moving", context)


def _overview_context() -> dict[str, Any]:
    context = {**_problems_context(), **_gateways_context(), **_work_context()}
    # The version covers all values of the page, so that polling sees every change.
    version = crc32(repr([context.pop(name) for name in _VERSIONS]).encode())
    return context | {"version": f"{version:08x}"}


def _problems_context() -> dict[str, Any]:
    runs = Run.objects.listed().filter(state=RunState.FAILED).order_by("-ended_at")
    failed_by_asset, failed_runs, broken = _most_failed(10), list(runs[:8]), broken_bundles()
    has_assets = Asset.objects.filter(active=True).exists()
    left_out = left_out_lately(timezone.now())
    ended = [(run.pk, run.ended_at) for run in failed_runs]
    unloaded = [(bundle.pk, bundle.error, bundle.current_version_id) for bundle in broken]
    return {
        "failed": failed_by_asset,
        "failed_runs": failed_runs,
        "broken": broken,
        "left_out": left_out,
        "any_asset": has_assets,
        "needs_version": (
            failed_by_asset,
            ended,
            unloaded,
            has_assets,
            [(truncated_tick.pk, truncated_tick.at) for truncated_tick in left_out],
        ),
    }


def _most_failed(most: int) -> list[dict[str, Any]]:
    """Return the names of the assets with the most failed partitions, with their numbers."""
    counts = failed_counts()
    largest = sorted(counts, key=lambda asset_id: (-counts[asset_id], asset_id))[:most]
    names = dict(Asset.objects.filter(pk__in=largest).values_list("pk", "name")) if largest else {}
    return [{"asset__name": names[pk], "number": counts[pk]} for pk in largest if pk in names]


def _gateways_context() -> dict[str, Any]:
    # By the database's clock, which also stamps the heartbeats of gateways.
    gateways = Gateway.objects.annotate(now=Now())
    gateway_states = [(gateway, gateway.state_at(gateway.now)) for gateway in gateways]
    shown = [(gateway.pk, gateway.slots, state) for gateway, state in gateway_states]
    return {"gateways": gateway_states, "gateways_version": shown}


def _work_context() -> dict[str, Any]:
    backfills = Backfill.objects.listed().exclude(state__in=ENDED_STATES).order_by("-id")[:10]
    running: list[Progress] = [progress_of(backfill) for backfill in backfills]
    unfinished = Run.objects.exclude(state__in=TERMINAL_STATES).order_by()
    counted = dict(unfinished.values_list("state").annotate(number=Count("pk")))
    runs = [(state.value, counted[state]) for state in RunState if state in counted]
    version = ([backfill_progress.version for backfill_progress in running], runs)
    return {"running": running, "runs": runs, "going_on_version": version}

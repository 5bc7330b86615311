"""Pausing and unpausing the schedule of an asset."""

from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from accounts_app.page_policy import person_of, posts_need
from accounts_app.policy import Action
from assets_app.catalogue.services import set_paused
from assets_app.queries.clock import database_now
from assets_app.scheduling.missed import missed_by
from assets_app.views.assets import asset_for_page


@login_required
@require_POST
@posts_need(Action.PAUSE)
def pause(request: HttpRequest, name: str) -> HttpResponse:
    """Pause the asset: the schedule queues nothing any more."""
    asset = asset_for_page(name)
    set_paused(asset, True, user=person_of(request))
    messages.success(request, f"{name} paused. Manual runs and backfills still work.")
    return _back(name, {})


@login_required
@require_POST
@posts_need(Action.PAUSE)
def unpause(request: HttpRequest, name: str) -> HttpResponse:
    """Unpause the asset from now on, and offer a backfill for missed partitions."""
    asset = asset_for_page(name)
    missed = missed_by(asset, database_now())
    set_paused(asset, False, user=person_of(request))
    messages.success(request, f"{name} unpaused. Missed partitions do not run automatically.")
    # For a schedule by assets the tab computes the missed partitions by itself.
    ends: dict[str, str] = {}
    if missed is not None and missed.is_by_time:
        ends = {"missed_first": missed.first, "missed_last": missed.last}
    return _back(name, ends)


def _back(name: str, parameters: dict[str, str]) -> HttpResponseRedirect:
    query = urlencode({"tab": "schedule", **parameters})
    return HttpResponseRedirect(f"{reverse('assets:asset', args=[name])}?{query}")

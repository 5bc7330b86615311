"""Pausing and unpausing the schedule of an asset."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from accounts_app.page_policy import person_of, posts_need
from accounts_app.policy import Action
from assets_app.catalogue.pausing import set_paused
from assets_app.views.assets import asset_for_page


@login_required
@require_POST
@posts_need(Action.PAUSE)
def pause(request: HttpRequest, name: str) -> HttpResponse:
    """Pause the asset: the schedule queues nothing any more."""
    asset = asset_for_page(name)
    set_paused(asset, True, user=person_of(request))
    messages.success(request, f"{name} paused. Manual runs and backfills still work.")
    return _back(name)


@login_required
@require_POST
@posts_need(Action.PAUSE)
def unpause(request: HttpRequest, name: str) -> HttpResponse:
    """Unpause the asset from now on; the tab offers a backfill for missed partitions."""
    asset = asset_for_page(name)
    set_paused(asset, False, user=person_of(request))
    messages.success(request, f"{name} unpaused. Missed partitions do not run automatically.")
    return _back(name)


def _back(name: str) -> HttpResponseRedirect:
    return HttpResponseRedirect(f"{reverse('assets:asset', args=[name])}?tab=schedule")

"""Pausing and unpausing the schedules of one asset or of several."""

from collections.abc import Collection

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from accounts_app.page_policy import person_of, posts_need
from accounts_app.policy import Action
from assets_app.catalogue.bulk_pausing import BulkPause, set_paused_in_bulk
from assets_app.catalogue.pausing import set_paused
from assets_app.views.assets import asset_for_page
from slicewise.texts import counted, listed
from slicewise_server.web.request_errors import InvalidRequest
from slicewise_server.web.typed_ids import ids_of

_MOST_NAMED = 10


@login_required
@require_POST
@posts_need(Action.PAUSE)
def pause(request: HttpRequest, name: str) -> HttpResponse:
    """Pause the asset: the schedule queues nothing any more."""
    asset = asset_for_page(name)
    names = listed(set_paused(asset, True, user=person_of(request)) or [name], _MOST_NAMED)
    messages.success(request, f"{names} paused. Manual runs and backfills still work.")
    return _back(name)


@login_required
@require_POST
@posts_need(Action.PAUSE)
def unpause(request: HttpRequest, name: str) -> HttpResponse:
    """Unpause the asset from now on; the tab offers a backfill for missed partitions."""
    asset = asset_for_page(name)
    names = listed(set_paused(asset, False, user=person_of(request)) or [name], _MOST_NAMED)
    messages.success(request, f"{names} unpaused. Missed partitions do not run automatically.")
    return _back(name)


@login_required
@require_POST
@posts_need(Action.PAUSE)
def pause_several(request: HttpRequest) -> HttpResponse:
    """Pause the selected assets."""
    return _set_several(request, True)


@login_required
@require_POST
@posts_need(Action.PAUSE)
def unpause_several(request: HttpRequest) -> HttpResponse:
    """Unpause the selected assets from now on."""
    return _set_several(request, False)


def _set_several(request: HttpRequest, paused: bool) -> HttpResponse:
    ids = ids_of(request.POST.getlist("id"))
    if ids:
        set_paused_and_report(request, ids, paused)
    else:
        messages.error(request, "No asset selected.")
    return _back_to_list(request)


def set_paused_and_report(request: HttpRequest, ids: Collection[int], paused: bool) -> None:
    """Pause or unpause the assets, and tell the person on the next page what changed."""
    try:
        _report(request, set_paused_in_bulk(ids, paused, user=person_of(request)), paused)
    except InvalidRequest as refusal:
        messages.error(request, str(refusal))


def _report(request: HttpRequest, result: BulkPause, paused: bool) -> None:
    """Tell which assets changed, and why others did not."""
    word = "paused" if paused else "unpaused"
    if names := result.changed:
        effect = (
            "Manual runs and backfills still work."
            if paused
            else "Missed partitions do not run automatically."
        )
        number = counted(len(names), "asset")
        messages.success(request, f"{number} {word}: {listed(names, _MOST_NAMED)}. {effect}")
    if result.unchanged:
        reasons = [f"{name} ({reason})" for name, reason in result.unchanged.items()]
        messages.warning(request, f"Not {word}: {listed(reasons, _MOST_NAMED)}.")


def _back_to_list(request: HttpRequest) -> HttpResponseRedirect:
    """Redirect to the shown page of the list."""
    # A query string of the list, never another address.
    query = request.POST.get("back", "").lstrip("?")
    address = reverse("assets:assets")
    return HttpResponseRedirect(f"{address}?{query}" if query else address)


def _back(name: str) -> HttpResponseRedirect:
    return HttpResponseRedirect(f"{reverse('assets:asset', args=[name])}?tab=schedule")

"""What can be done with backfills, with one or with several: at once, or after a page that asks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from accounts_app.errors import InvalidRequest
from accounts_app.models import User
from backfills_app.forms import ChangeForm
from backfills_app.models import Backfill
from backfills_app.services import (
    cancel_backfill,
    change_backfill,
    delete_backfill,
    in_bulk,
    pause_backfill,
    resume_backfill,
    retry_failed,
)
from backfills_app.services.retrying import retryable_counts
from backfills_app.views.allowed import Allowed, reaches_of
from backfills_app.views.progress import progress_with_pace

MOST_SAID = 5


@dataclass(frozen=True, slots=True)
class Deed:
    """One thing to do with backfills; ``asks`` what is said before it is done, if anything."""

    act: Callable[..., Backfill]
    verb: str
    icon: str
    done: str
    asks: str = ""
    leaves: str = ""
    danger: bool = False
    chooses_code: bool = False


DEEDS = {
    "pause": Deed(pause_backfill, "Pause", "player-pause", "paused, no new runs start"),
    "resume": Deed(resume_backfill, "Resume", "player-play", "resumed"),
    "cancel": Deed(
        cancel_backfill,
        "Cancel",
        "player-stop",
        "canceling",
        asks="Active runs are stopped and queued runs are dropped. Finished partitions are kept.",
        leaves="Keep running",
        danger=True,
    ),
    "retry": Deed(
        retry_failed,
        "Retry",
        "rotate",
        "retrying",
        asks="Requeues failed partitions, and partitions skipped because of upstream, in this"
        " backfill. Current data stays until a run succeeds.",
        leaves="Back",
        chooses_code=True,
    ),
    "delete": Deed(
        delete_backfill,
        "Delete",
        "trash",
        "deleted",
        asks="Hides the backfill from lists. Data and history are kept, under the state Deleted.",
        leaves="Back",
        danger=True,
    ),
}


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def backfill_act(request: HttpRequest, pk: int, action: str) -> HttpResponse:
    """Do it with one; what cannot be undone is asked about first."""
    found = _backfill(pk)
    deed = DEEDS[action]
    if request.method != "POST":
        if not deed.asks:
            return redirect("backfills:backfill", pk)
        return _ask(request, [found], action)
    how: dict[str, Any] = {}
    if deed.chooses_code:
        how["canceled"] = "canceled" in request.POST
        if "code" in request.POST:
            how["code"] = request.POST["code"]
    try:
        deed.act(found, user=_person(request), **how)
        messages.success(request, f"{found.name}: {deed.done}.")
    except InvalidRequest as refused:
        messages.error(request, str(refused))
        return _back(request, pk)
    return _back(request, None if action == "delete" else pk)


@login_required
@require_POST
def backfills_act(request: HttpRequest, action: str) -> HttpResponse:
    """The same with all that are selected."""
    deed = DEEDS[action]
    ids = [int(text) for text in request.POST.getlist("id") if text.isdecimal() and len(text) < 19]
    if not ids:
        messages.error(request, "No backfill selected.")
        return _back(request)
    if deed.asks and "sure" not in request.POST:
        found = list(Backfill.objects.listed().filter(pk__in=ids).order_by("-id"))
        return _ask(request, found, action, several=True)
    try:
        result = in_bulk(action, ids, user=_person(request))
    except InvalidRequest as refused:
        messages.error(request, str(refused))
        return _back(request)
    if number := len(result.done):
        counted = "1 backfill" if number == 1 else f"{number} backfills"
        messages.success(request, f"{counted}: {deed.done}.")
    refusals = list(result.refused.values())
    for sentence in refusals[:MOST_SAID]:
        messages.warning(request, sentence)
    if len(refusals) > MOST_SAID:
        messages.warning(request, f"{len(refusals) - MOST_SAID} more skipped.")
    return _back(request)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def backfill_change(request: HttpRequest, pk: int) -> HttpResponse:
    """How many run at once, what goes first, in which order, and why it is there."""
    found = _backfill(pk)
    present = ChangeForm.present(found)
    form = ChangeForm(request.POST) if request.method == "POST" else ChangeForm(initial=present)
    if request.method == "POST" and form.is_valid():
        try:
            change_backfill(found, user=_person(request), **form.changes())
            messages.success(request, f"{found.name} updated.")
            return redirect("backfills:backfill", pk)
        except InvalidRequest as refused:
            form.refuse(refused)
    status = 400 if request.method == "POST" else 200
    context = {"backfill": found, "form": form}
    return render(request, "backfills_app/backfill_change.html", context, status=status)


def _ask(
    request: HttpRequest, found: list[Backfill], action: str, *, several: bool = False
) -> HttpResponse:
    """The page that says what it means; it is sent to where it was asked for."""
    deed = DEEDS[action]
    reaches = reaches_of(request)
    progress = progress_with_pace(found)
    retryable = retryable_counts(found[0]) if deed.chooses_code and not several else None
    context = {
        "deed": deed,
        "action": action,
        "rows": progress,
        "retryable": retryable,
        "is_canceled_too": "canceled" in request.GET,
        "one": found[0] if len(found) == 1 else None,
        "single": not several,
        "back": request.POST.get("back", ""),
        "may": any(
            _may(reaches.over(one, skipped_upstream=True), action, of_several=several)
            for one in progress
        ),
    }
    return render(request, "backfills_app/backfills_ask.html", context)


def _may(allowed: Allowed, action: str, *, of_several: bool) -> bool:
    if action == "retry":
        # The page of several has no box for what was canceled.
        return allowed.retry or (allowed.retry_canceled and not of_several)
    return bool(getattr(allowed, action))


def _back(request: HttpRequest, pk: int | None = None) -> HttpResponseRedirect:
    """To the list as it was shown, or to the page of the one."""
    if "back" in request.POST or pk is None:
        # A query string of the list, never another address.
        query = request.POST.get("back", "").lstrip("?")
        address = reverse("backfills:backfills")
        return HttpResponseRedirect(f"{address}?{query}" if query else address)
    return HttpResponseRedirect(reverse("backfills:backfill", args=[pk]))


def _backfill(pk: int) -> Backfill:
    return get_object_or_404(Backfill.objects.listed(), pk=pk)


def _person(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101  (login_required)
    return request.user

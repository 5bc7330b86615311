"""Actions on one backfill or on several: at once, or after a page that asks for confirmation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from accounts_app.page_policy import person_of
from accounts_app.policy import Action, require_for_some
from assets_app.queries.code_choices import code_choice
from backfills_app.forms import ChangeForm
from backfills_app.models import Backfill
from backfills_app.queries.retry_skips import retry_skips
from backfills_app.services import (
    cancel_backfill,
    change_backfill,
    delete_backfill,
    in_bulk,
    pause_backfill,
    require_control,
    resume_backfill,
    retry_failed,
)
from backfills_app.services.control.retrying_failed import retryable_counts
from backfills_app.views.allowed import Allowed, reaches_of
from backfills_app.views.progress import progress_with_pace
from slicewise_server.web.request_errors import InvalidRequest
from slicewise_server.web.typed_ids import ids_of

MOST_SAID = 5


@dataclass(frozen=True, slots=True)
class Operation:
    """An action on backfills; ``asks`` is the text of the confirmation, empty for actions without
    one.
    """

    act: Callable[..., Backfill]
    verb: str
    icon: str
    done: str
    asks: str = ""
    leaves: str = ""
    danger: bool = False
    needs: Action = Action.BACKFILL
    chooses_code: bool = False


OPERATIONS = {
    "pause": Operation(pause_backfill, "Pause", "player-pause", "paused, no new runs start"),
    "resume": Operation(resume_backfill, "Resume", "player-play", "resumed"),
    "cancel": Operation(
        cancel_backfill,
        "Cancel",
        "player-stop",
        "canceling",
        asks="Active runs are stopped, except runs that are publishing. Queued runs and waiting"
        " partitions are canceled. Materialized partitions are kept.",
        leaves="Back",
        danger=True,
        needs=Action.CANCEL,
    ),
    "retry": Operation(
        retry_failed,
        "Retry",
        "rotate",
        "retrying",
        asks="Requeues failed partitions, and partitions skipped because of upstream, in this"
        " backfill. Current data of a partition stays until new data is published.",
        leaves="Back",
        chooses_code=True,
    ),
    "delete": Operation(
        delete_backfill,
        "Delete",
        "trash",
        "deleted",
        asks="Hides the backfill from lists, except under the filter Deleted. Data and history are"
        " kept.",
        leaves="Back",
        danger=True,
    ),
}


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def backfill_act(request: HttpRequest, pk: int, action: str) -> HttpResponse:
    """Apply an action to one backfill; show the page that asks for confirmation first, if it has
    one.
    """
    backfill = _backfill(pk)
    operation = OPERATIONS[action]
    if request.method != "POST":
        if not operation.asks:
            return redirect("backfills:backfill", pk)
        return _confirmation_page(request, [backfill], action)
    require_control(backfill, operation.needs, person_of(request))
    how: dict[str, Any] = {}
    if operation.chooses_code:
        how["canceled"] = "canceled" in request.POST
        if "code" in request.POST:
            how["code"] = request.POST["code"]
    try:
        operation.act(backfill, user=person_of(request), **how)
        messages.success(request, f"{backfill.name}: {operation.done}.")
    except InvalidRequest as refusal:
        messages.error(request, str(refusal))
        return _redirect_back(request, pk)
    return _redirect_back(request, None if action == "delete" else pk)


@login_required
@require_POST
def backfills_act(request: HttpRequest, action: str) -> HttpResponse:
    """Apply an action to all selected backfills."""
    operation = OPERATIONS[action]
    require_for_some(person_of(request), operation.needs)
    ids = ids_of(request.POST.getlist("id"))
    if not ids:
        messages.error(request, "No backfill selected.")
        return _redirect_back(request)
    if operation.asks and "sure" not in request.POST:
        selected = list(Backfill.objects.listed().filter(pk__in=ids).order_by("-id"))
        return _confirmation_page(request, selected, action, several=True)
    try:
        result = in_bulk(action, ids, user=person_of(request))
    except InvalidRequest as refusal:
        messages.error(request, str(refusal))
        return _redirect_back(request)
    if number := len(result.done):
        counted = "1 backfill" if number == 1 else f"{number} backfills"
        messages.success(request, f"{counted}: {operation.done}.")
    refusals = list(result.refused.values())
    for sentence in refusals[:MOST_SAID]:
        messages.warning(request, sentence)
    if len(refusals) > MOST_SAID:
        messages.warning(request, f"{len(refusals) - MOST_SAID} more skipped.")
    return _redirect_back(request)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def backfill_change(request: HttpRequest, pk: int) -> HttpResponse:
    """Show or save the limit of active runs, the priority, the order and the description."""
    backfill = _backfill(pk)
    if request.method == "POST":
        require_control(backfill, Action.BACKFILL, person_of(request))
    present_values = ChangeForm.present(backfill)
    form = (
        ChangeForm(request.POST) if request.method == "POST" else ChangeForm(initial=present_values)
    )
    if request.method == "POST" and form.is_valid():
        try:
            if changes := form.changes():
                change_backfill(backfill, user=person_of(request), **changes)
            messages.success(request, f"{backfill.name} {'updated' if changes else 'unchanged'}.")
            return redirect("backfills:backfill", pk)
        except InvalidRequest as refusal:
            form.refuse(refusal)
    status = 400 if request.method == "POST" else 200
    context = {"backfill": backfill, "form": form}
    return render(request, "backfills_app/backfill_change.html", context, status=status)


def _confirmation_page(
    request: HttpRequest, backfills: list[Backfill], action: str, *, several: bool = False
) -> HttpResponse:
    """Return the page that explains an action, and whose form goes to the address of the action."""
    operation = OPERATIONS[action]
    permissions = reaches_of(request)
    progress = progress_with_pace(backfills)
    retry = _retry_context(backfills[0]) if operation.chooses_code and not several else {}
    context = {
        **retry,
        "operation": operation,
        "action": action,
        "rows": progress,
        "is_canceled_too": "canceled" in request.GET,
        "backfill": backfills[0] if len(backfills) == 1 else None,
        "single": not several,
        "back": request.POST.get("back", ""),
        "may": any(
            _is_allowed(
                permissions.over(backfill_progress, has_retried_skips=True),
                action,
                of_several=several,
            )
            for backfill_progress in progress
        ),
    }
    return render(request, "backfills_app/backfills_ask.html", context)


def _retry_context(backfill: Backfill) -> dict[str, Any]:
    """Return the choice of the code, the numbers of partitions that a retry takes, and the
    sentences on partitions that the retry skips.
    """
    retryable = retryable_counts(backfill)
    skips, canceled_skips = retry_skips(backfill)
    rows = backfill.assets.values_list("producer_version", "asset__producer__current_version")
    return {
        "choice": code_choice(rows.order_by()),
        "retryable": retryable,
        "skips_text": skips.text(retryable.failed),
        "canceled_skips_text": canceled_skips.text(retryable.canceled),
    }


def _is_allowed(allowed: Allowed, action: str, *, of_several: bool) -> bool:
    if action == "retry":
        # The page for several backfills has no box for canceled partitions.
        return allowed.retry or (allowed.retry_canceled and not of_several)
    return bool(getattr(allowed, action))


def _redirect_back(request: HttpRequest, pk: int | None = None) -> HttpResponseRedirect:
    """Redirect to the list as it was shown, or to the page of the only backfill."""
    if "back" in request.POST or pk is None:
        # A query string of the list, never another address.
        query = request.POST.get("back", "").lstrip("?")
        address = reverse("backfills:backfills")
        return HttpResponseRedirect(f"{address}?{query}" if query else address)
    return HttpResponseRedirect(reverse("backfills:backfill", args=[pk]))


def _backfill(pk: int) -> Backfill:
    return get_object_or_404(Backfill.objects.listed(), pk=pk)

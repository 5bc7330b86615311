"""The page with the form for a new backfill."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from accounts_app.models import User
from accounts_app.page_policy import posts_need
from accounts_app.policy import Action, reach
from assets_app.execution.request.requests import preview_selection
from assets_app.models import Asset
from backfills_app.forms import BackfillForm
from backfills_app.forms.choice import names_in
from backfills_app.forms.presets import PRESETS
from backfills_app.forms.trigger import AT_MOST, CHOSEN
from backfills_app.models import Backfill
from backfills_app.services import (
    check_backfill,
    clone_fields,
    create_backfill,
)
from backfills_app.views.plans import planned_page
from slicewise_server.web.request_errors import InvalidRequest

# The fields that a link to the form may fill in.
_FILLED_BY_LINK = (
    "asset",
    "assets",
    "asset_group",
    "asset_tag",
    "upstream",
    "start",
    "end",
    "selection",
    "description",
    "max_active_runs",
    "strategy",
    "per_run",
    "order",
    "existing",
    "downstream",
    "params",
    "code_version",
    "start_at",
    "allow_holes",
)
TEMPLATE = "backfills_app/backfill_new.html"
# The event that tells the preview that From and To were filled in.
_ENDS_FILLED = "ends-filled"


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_need(Action.BACKFILL, on_some_asset=True)
def backfill_new(request: HttpRequest) -> HttpResponse:
    """Show the form; answer with the preview while a person types; create the backfill."""
    person = request.user
    assert isinstance(person, User)  # noqa: S101  (login_required)
    if request.method == "POST":
        return _posted(request, person)
    if request.htmx:  # type: ignore[attr-defined]
        return _fragment(request, person)
    form = BackfillForm(user=person, initial=_initial(request))
    return render(request, TEMPLATE, _page_context(form, person))


def _posted(request: HttpRequest, person: User) -> HttpResponse:
    form = BackfillForm(request.POST, user=person)
    if preset := _preset(request.POST.get("preset")):
        form = form.with_preset(preset)
        return render(
            request, TEMPLATE, _page_context(form, person) | _preview_context(form, person)
        )
    if "preview" in request.POST:
        return render(
            request, TEMPLATE, _page_context(form, person) | _preview_context(form, person)
        )
    try:
        backfill = create_backfill(form.request(), user=person)
        messages.success(request, f"{backfill.name} created.")
        return redirect("backfills:backfill", backfill.pk)
    except InvalidRequest as refusal:
        form.refuse_once(refusal)
    return render(request, TEMPLATE, _page_context(form, person), status=400)


def _fragment(request: HttpRequest, person: User) -> HttpResponse:
    """Return the fragment that a script requests while the form is filled in."""
    form = BackfillForm(request.GET, user=person)
    if preset := _preset(request.GET.get("preset")):
        form = form.with_preset(preset)
        answer = render(request, f"{TEMPLATE}#span", _page_context(form, person))
        answer["HX-Trigger-After-Settle"] = _ENDS_FILLED
        return answer
    if request.GET.get("part") == "dependent":
        return render(request, f"{TEMPLATE}#dependent", _page_context(form, person))
    return render(request, f"{TEMPLATE}#preview", _preview_context(form, person))


def _preview_context(form: BackfillForm, person: User) -> dict[str, Any]:
    if not form.is_begun:
        return {}
    try:
        plan = check_backfill(form.request(), user=person)
        return planned_page(plan, form.cleaned_data["existing"])
    except InvalidRequest as refusal:
        labeled_errors = [
            (form.fields[field].label if field in form.fields else "", sentence)
            for field, sentences in refusal.errors.items()
            for sentence in sentences
        ]
        return {"refused": labeled_errors}
    except PermissionDenied as denied:
        return {"refused": [("", str(denied))]}


def _page_context(form: BackfillForm, person: User) -> dict[str, Any]:
    may_backfill = bool(reach(person, Action.BACKFILL))
    return {"form": form, "may_backfill": may_backfill, "presets": PRESETS}


def _preset(text: str | None) -> str | None:
    return text if text in PRESETS else None


def _initial(request: HttpRequest) -> dict[str, Any]:
    """Return the values that a link fills in, or the request of a backfill to clone."""
    clone = request.GET.get("clone", "")
    if clone.isdecimal() and len(clone) < 19:
        backfill = get_object_or_404(Backfill.objects.recorded(), pk=int(clone))
        initial = clone_fields(backfill)
    else:
        initial = {name: request.GET[name] for name in _FILLED_BY_LINK if request.GET.get(name)}
        initial["assets"] = names_in(request.GET.getlist("assets"))
        if initial.get("upstream", "").lower() in ("0", "false", "no"):
            del initial["upstream"]
    if str(initial.get("strategy", "")).isdecimal():
        initial |= {"strategy": AT_MOST, "per_run": str(initial["strategy"])}
    followers = initial.get("downstream")
    if isinstance(followers, str):
        followers = None if followers in ("none", "all") else followers.split(",")
    if followers:
        initial |= {"downstream": CHOSEN, "downstream_assets": followers}
    return initial | _first_and_last(initial)


def _first_and_last(initial: dict[str, Any]) -> dict[str, str]:
    """Return the first and the last window of a selection made in a grid, if the selection has all
    partitions between the two; otherwise nothing.

    Dates are easier to change than a selection is.
    """
    selection = initial.get("selection", "")
    asset = Asset.objects.declared().filter(name=initial.get("asset", "")).first()
    if not selection or asset is None or asset.definition is None:
        return {}
    definition = asset.definition
    if definition.time_dimension is None:
        return {}
    try:
        chosen = preview_selection(asset, selection)
    except InvalidRequest:
        # The form opens with the typed text, and the check of the form shows the error.
        return {}
    first, last = chosen[0].time, chosen[-1].time
    time = definition.time_dimension
    axis = next(
        dimension.name for dimension in definition.dimensions if dimension.definition is time
    )
    if len(chosen) != len(definition.select(f"{axis}={first.text}..{last.text}")):
        return {}
    return {"selection": "", "start": first.text, "end": last.text}

"""The trigger form."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from accounts_app.errors import InvalidRequest
from accounts_app.models import User
from accounts_app.policy import Action, may
from assets_app.execution.requests import preview_selection
from assets_app.models import Asset
from backfills_app.forms import BackfillForm
from backfills_app.services import check_backfill, create_backfill

# What a link to the form may fill in.
_FILLED_BY_LINK = (
    "asset",
    "start",
    "end",
    "description",
    "max_active_runs",
    "strategy",
    "existing",
)
TEMPLATE = "backfills_app/backfill_new.html"


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def backfill_new(request: HttpRequest) -> HttpResponse:
    """The form; while it is typed, what it comes to; and the request itself."""
    person = request.user
    assert isinstance(person, User)  # noqa: S101  (login_required)
    if request.method == "POST":
        return _create(request, person)
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, f"{TEMPLATE}#preview", _preview(BackfillForm(request.GET), person))
    form = BackfillForm(initial=_initial(request))
    return render(request, TEMPLATE, _page(form, person))


def _create(request: HttpRequest, person: User) -> HttpResponse:
    form = BackfillForm(request.POST)
    try:
        if form.is_valid():
            if "preview" in request.POST:
                return render(request, TEMPLATE, _page(form, person) | _preview(form, person))
            backfill = create_backfill(form.request(), user=person)
            messages.success(request, f"{backfill.name} has been created.")
            return redirect("backfills:backfill", backfill.pk)
    except InvalidRequest as refused:
        form.refuse(refused)
    return render(request, TEMPLATE, _page(form, person), status=400)


def _preview(form: BackfillForm, person: User) -> dict[str, Any]:
    try:
        request = form.request()
        rule = request.asset.definition and request.asset.definition.time_dimension
        plan = check_backfill(request, user=person)
        return {"plan": plan, "zone": rule.timezone if rule else ""}
    except InvalidRequest as refused:
        named = [
            (form.fields[field].label if field in form.fields else "", sentence)
            for field, said in refused.errors.items()
            for sentence in said
        ]
        return {"refused": named}
    except PermissionDenied as denied:
        return {"refused": [("", str(denied))]}


def _page(form: BackfillForm, person: User) -> dict[str, Any]:
    return {"form": form, "may_backfill": may(person, Action.BACKFILL)}


def _initial(request: HttpRequest) -> dict[str, str]:
    initial = {name: request.GET[name] for name in _FILLED_BY_LINK if request.GET.get(name)}
    if selection := request.GET.get("selection"):
        initial |= _ends(initial.get("asset", ""), selection)
    return initial


def _ends(name: str, selection: str) -> dict[str, str]:
    """The first and the last window of what was selected in a grid."""
    asset = Asset.objects.declared().filter(name=name).first()
    if asset is None or asset.definition is None or asset.definition.time_dimension is None:
        return {}
    try:
        chosen = preview_selection(asset, selection)
    except InvalidRequest:
        # The form opens with the text as it was typed: its check says what is wrong.
        return {"start": selection, "end": selection}
    return {"start": chosen[0].time.text, "end": chosen[-1].time.text}

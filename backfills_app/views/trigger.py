"""The page with the form for a new backfill."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from accounts_app.models import User
from accounts_app.page_policy import posts_need
from accounts_app.policy import Action, reach
from assets_app.views.graph_canvas import downstream_graph
from backfills_app.forms import BackfillForm
from backfills_app.forms.choice import Suggestion
from backfills_app.forms.links import completed, values_in
from backfills_app.forms.period import SEGMENT
from backfills_app.forms.presets import PRESETS
from backfills_app.models import Backfill, ExistingPolicy
from backfills_app.services import (
    check_backfill,
    clone_fields,
    obstacles_of,
    request_backfill,
)
from backfills_app.views.allowed import covers_backfill
from backfills_app.views.plans import planned_page
from backfills_app.views.ways_out import ways_out
from slicewise.texts import masked_json
from slicewise_server.web.request_errors import InvalidRequest
from slicewise_server.web.typed_ids import is_id

TEMPLATE = "backfills_app/backfill_new.html"
_MOST_SUGGESTED = 30
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
    form = BackfillForm(user=person, initial=_initial(request, person))
    return render(request, TEMPLATE, _page_context(form, person))


def _posted(request: HttpRequest, person: User) -> HttpResponse:
    data = request.POST.copy()
    if "run_all" in data:
        data["existing"] = ExistingPolicy.ALL
    if "add_upstream" in data:
        data.update({"upstream": "on", "preview": "1"})
    form = BackfillForm(data, user=person)
    if preset := _preset(request.POST.get("preset")):
        form = form.with_preset(preset)
        return render(
            request, TEMPLATE, _page_context(form, person) | _preview_context(form, person)
        )
    if "preview" in data:
        context = _page_context(form, person) | _preview_context(form, person)
        return render(request, TEMPLATE, context | _counts_context(form, person))
    try:
        backfill = _created(form, person, request)
        return redirect("backfills:backfill", backfill.pk)
    except InvalidRequest as refusal:
        # Before the form has the errors of the refusal: the preview offers the ways out.
        preview = _preview_context(form, person)
        form.refuse_once(refusal)
    return render(request, TEMPLATE, _page_context(form, person) | preview, status=400)


def _created(form: BackfillForm, person: User, request: HttpRequest) -> Backfill:
    """Create the backfill of a submission, or return the backfill that the submission created.

    Raises InvalidRequest, also where there is nothing to run.
    """
    token = form.data.get("token", "")
    digest = _digest(form, person) if token else ""
    if digest and (earlier := Backfill.objects.of_submission(digest)):
        messages.info(request, f"This form was submitted already: it created {earlier.name}.")
        return earlier
    backfill = request_backfill(form.request(), user=person, submission=digest or None)
    messages.success(request, f"{backfill.name} created.")
    return backfill


def _digest(form: BackfillForm, person: User) -> str:
    """Return a digest of all that was submitted: a changed form is another submission."""
    fields = sorted(
        (name, values)
        for name, values in form.data.lists()  # type: ignore[attr-defined]
        if name != "csrfmiddlewaretoken"
    )
    return hashlib.sha256(json.dumps([person.pk, fields]).encode()).hexdigest()


def _fragment(request: HttpRequest, person: User) -> HttpResponse:
    """Return the fragment that a script requests while the form is filled in."""
    form = BackfillForm(request.GET, user=person)
    if preset := _preset(request.GET.get("preset")):
        form = form.with_preset(preset)
        answer = render(request, f"{TEMPLATE}#span", _page_context(form, person))
        answer["HX-Trigger-After-Settle"] = _ENDS_FILLED
        return answer
    fragment = request.GET.get("fragment")
    if fragment == "counts":
        return render(request, f"{TEMPLATE}#counts", _counts_context(form, person))
    if fragment in ("asset-options", "assets-options"):
        suggestions = _suggested_assets(form, request.GET)
        return render(request, f"{TEMPLATE}#asset-options", {"suggestions": suggestions})
    if fragment == "segment-options":
        options = _segment_options(form, request.GET.get("dimension", ""))
        return render(request, f"{TEMPLATE}#segment-options", {"options": options})
    if fragment == "downstream-graph":
        context = downstream_graph(form.assets_chosen) if form.followers else {}
        return render(request, f"{TEMPLATE}#downstream-graph", context)
    if fragment == "dependent":
        return render(request, f"{TEMPLATE}#dependent", _page_context(form, person))
    context = _preview_context(form, person) | {"form": form, "is_fragment": True}
    return render(request, f"{TEMPLATE}#preview", context | _allowed(person))


def _preview_context(form: BackfillForm, person: User) -> dict[str, Any]:
    if not form.is_begun:
        return {}
    try:
        request = form.request()
        plan = check_backfill(request, user=person)
        context = planned_page(plan, request.existing)
        if obstacles := obstacles_of(plan, request):
            context["ways_out"] = ways_out(obstacles, plan, request, person)
        return context
    except InvalidRequest as refusal:
        labeled_errors = [
            (form.fields[field].label if field in form.fields else "", sentence)
            for field, sentences in refusal.errors.items()
            for sentence in sentences
        ]
        return {"refused": labeled_errors}
    except PermissionDenied as denied:
        return {"refused": [("", str(denied))]}


def _counts_context(form: BackfillForm, person: User) -> dict[str, Any]:
    """Return the number of partitions that each policy for existing partitions would run."""
    counts: dict[str, int] = {}
    if form.is_begun:
        try:
            request = form.request()
            for policy in ExistingPolicy:
                plan = check_backfill(replace(request, existing=policy), user=person)
                counts[policy.value] = plan.to_materialize
        except (InvalidRequest, PermissionDenied):
            counts = {}
    return {"form": form, "counts": counts, "policies": ExistingPolicy.values}


def _suggested_assets(form: BackfillForm, query: QueryDict) -> list[Suggestion]:
    if query["fragment"] == "asset-options":
        return form.offered.suggested(query.get("asset", ""))
    return form.offered.suggested_next(query.get("assets", ""))


def _segment_options(form: BackfillForm, name: str) -> list[str]:
    """Return texts that complete the last of the typed segments."""
    definition = form.asset_chosen.definition if form.asset_chosen else None
    dimensions = definition.segment_dimensions if definition else ()
    dimension = next((candidate for candidate in dimensions if candidate.name == name), None)
    if dimension is None:
        return []
    head, comma, tail = str(form.data.get(SEGMENT + name, "")).rpartition(",")
    typed = tail.strip().casefold()
    keys: Sequence[Any] = dimension.definition.keys()
    matching = (key.text for key in keys if typed in key.text.casefold())
    return [f"{head}{comma}{text}" for text in islice(matching, _MOST_SUGGESTED)]


def _allowed(person: User) -> dict[str, Any]:
    return {"may_backfill": bool(reach(person, Action.BACKFILL))}


def _page_context(form: BackfillForm, person: User) -> dict[str, Any]:
    return {"form": form, "presets": PRESETS, "policies": ExistingPolicy.values} | _allowed(person)


def _preset(text: str | None) -> str | None:
    return text if text in PRESETS else None


def _initial(request: HttpRequest, person: User) -> dict[str, Any]:
    """Return the values that a link fills in, or the request of a backfill to clone: with secret
    params masked, unless the person may clone the backfill.
    """
    clone = request.GET.get("clone", "")
    if is_id(clone):
        backfill = get_object_or_404(Backfill.objects.recorded(), pk=int(clone))
        fields = clone_fields(backfill)
        if not covers_backfill(reach(person, Action.BACKFILL), backfill):
            fields |= {"params": masked_json(fields.get("params", {}))}
        return completed(fields)
    return completed(values_in(request.GET))

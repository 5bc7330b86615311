"""The page of one partition, and the form that materializes partitions."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from accounts_app.page_policy import person_of, posts_need
from accounts_app.policy import Action, may
from assets_app.execution.request.requests import MaterializeRequest, materialize, preview_selection
from assets_app.forms import MaterializeForm
from assets_app.models import Asset, RunGroup, ValidationResult
from assets_app.queries import pages
from assets_app.queries.staleness import newer_inputs
from assets_app.scheduling.gaps import gaps_of
from assets_app.views.assets import asset_for_page, can_be_materialized, is_external
from partitions_app.labels import example_selection, label_of, label_of_key
from partitions_app.state_badges import MISSING, NOT_YET_DUE, badge_of_partition
from slicewise.partitions import is_runtime
from slicewise_server.web.request_errors import InvalidRequest

_MATERIALIZE_HINT = "Materialize this partition, or start a backfill."
_REPORT_HINT = "External asset. Report materializations here or through the API."


@login_required
@require_safe
def partition(request: HttpRequest, name: str, key: str = "") -> HttpResponse:
    """Render one partition: the status, the materializations and the inputs."""
    asset = asset_for_page(name)
    row = pages.slice_of(asset, key)
    window = _window(asset, key) if row is None else None
    materializations = pages.materializations_of(row) if row else []
    last_run = row.last_run if row else None
    newer = newer_inputs(asset, [key]).get(key) if materializations else None
    context = {
        "asset": asset,
        "key": key,
        "label": label_of(asset.definition, key),
        "row": row,
        "look": _look(row, window, is_stale=newer is not None),
        "newer": newer,
        "gaps": gaps_of(asset, key, timezone.now()),
        "window_start": row.window_start if row else window and window.start,
        "window_end": row.window_end if row else window and window.end,
        "zone": _zone(asset),
        "materializations": materializations,
        "inputs": pages.inputs_of(materializations[0]) if materializations else [],
        "runs": pages.runs_of_partition(row) if row else [],
        "validations": _of_last_attempt(pages.validations_of(last_run)) if last_run else [],
        "may_materialize": may(request.user, Action.MATERIALIZE) and can_be_materialized(asset),
        "may_report": may(request.user, Action.REPORT) and is_external(asset),
        "may_remove": is_runtime_partition(asset, key) and may(request.user, Action.PARTITIONS),
        "never_made_hint": _REPORT_HINT if is_external(asset) else _MATERIALIZE_HINT,
    }
    return render(request, "assets_app/partition.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_need(Action.MATERIALIZE)
def materialize_page(request: HttpRequest, name: str) -> HttpResponse:
    """Render the form and a preview of the typed selection, or carry out the request."""
    asset = asset_for_page(name)
    form = _form(asset, request)
    if request.method == "POST" and form.is_valid():
        try:
            return _redirect_to_runs(
                request, asset, materialize(_request(asset, form), user=person_of(request))
            )
        except InvalidRequest as refused:
            form.refuse(refused)
    selection = request.POST.get("selection", request.GET.get("selection", ""))
    context = {
        "asset": asset,
        "form": form,
        "selected": selection_preview(asset, selection),
        "may_materialize": may(request.user, Action.MATERIALIZE) and can_be_materialized(asset),
    }
    template = "assets_app/materialize.html"
    if request.htmx and request.method == "GET":  # type: ignore[attr-defined]
        template += "#selected"
    return render(request, template, context, status=400 if request.method == "POST" else 200)


def is_runtime_partition(asset: Asset, key: str) -> bool:
    """Return whether the key is a runtime partition of the asset, and so can be removed."""
    definition = asset.definition
    return is_runtime(definition) and key in definition.values.places


def _form(asset: Asset, request: HttpRequest) -> MaterializeForm:
    version = asset.producer.current_version if asset.producer else None
    shape: dict[str, Any] = {
        "partitioned": asset.definition is not None,
        "params": version.spec.params if version else {},
    }
    if request.method == "POST":
        return MaterializeForm(request.POST, **shape)
    form = MaterializeForm(initial={"selection": request.GET.get("selection", "")}, **shape)
    if asset.definition is not None:
        example = example_selection(asset.definition, timezone.now())
        form.fields["selection"].widget.attrs["placeholder"] = example
    return form


def _request(asset: Asset, form: MaterializeForm) -> MaterializeRequest:
    values = form.cleaned_data
    return MaterializeRequest(
        asset=asset,
        selection=values.get("selection", ""),
        params=values.get("params") or {},
        strategy=values.get("strategy") or None,
    )


def _redirect_to_runs(request: HttpRequest, asset: Asset, group: RunGroup) -> HttpResponseRedirect:
    runs = list(group.runs.values_list("pk", flat=True)[:2])
    if group.earlier_missing:
        missing_keys = ", ".join(group.earlier_missing[:3])
        messages.warning(request, f"Previous partition not materialized yet: {missing_keys}.")
    if len(runs) == 1:
        messages.success(request, f"Run {runs[0]} queued.")
        return redirect("assets:run", runs[0])
    messages.success(request, f"{group.runs.count():,} runs of {asset.name} queued.")
    return HttpResponseRedirect(f"{reverse('assets:runs')}?group={group.pk}")


def selection_preview(asset: Asset, selection: str) -> dict[str, Any] | None:
    """Return count, first and last key of a selection, or errors; None for an empty selection."""
    if asset.definition is None or not selection.strip():
        return None
    try:
        keys = preview_selection(asset, selection)
    except InvalidRequest as refused:
        return {"errors": refused.errors.get("selection", [str(refused)])}
    first, last = keys[0], keys[-1]
    return {
        "count": len(keys),
        "first": first,
        "last": last,
        "first_label": label_of_key(first),
        "last_label": label_of_key(last),
    }


def _of_last_attempt(results: list[ValidationResult]) -> list[ValidationResult]:
    return [result for result in results if result.attempt_id == results[0].attempt_id]


def _window(asset: Asset, key: str) -> Any:
    """Return the window of a key that has no row; None for a key without time.

    Raise Http404 if the key names no partition.
    """
    definition = asset.definition
    if definition is None:
        if key:
            raise Http404(f"{asset.name} is unpartitioned and has no partition {key}.")
        return None
    try:
        parsed = definition.parse(key)
    except ValueError as error:
        raise Http404(f"{asset.name} has no partition {key}.") from error
    return parsed.time


def _zone(asset: Asset) -> str:
    definition = asset.definition
    time_definition = None if definition is None else definition.time_dimension
    return "" if time_definition is None else time_definition.timezone


def _look(row: Any, window: Any, *, is_stale: bool) -> Any:
    if row is not None:
        run_state = row.held_by.state if row.held_by else None
        return badge_of_partition(row.state, run_state, is_stale=is_stale)
    return NOT_YET_DUE if window is not None and window.end > timezone.now() else MISSING

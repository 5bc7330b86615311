"""The page of one partition, and the form that materializes partitions."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from accounts_app.page_policy import person_of, posts_need
from accounts_app.policy import Action, may, may_for_assets
from assets_app.execution.request.requests import MaterializeRequest, materialize, preview_selection
from assets_app.execution.request.retrying import can_retry
from assets_app.forms import MaterializeForm
from assets_app.models import (
    Asset,
    AssetDependency,
    AssetPartition,
    Materialization,
    PartitionState,
    Run,
    RunGroup,
    RunPartition,
    ValidationResult,
)
from assets_app.queries import pages
from assets_app.queries.adjacent import adjacent_to, followers_of_partition
from assets_app.queries.clock import database_now
from assets_app.queries.inputs_read import inputs_of
from assets_app.queries.late_inputs import LateInputFact, late_inputs_of
from assets_app.queries.missing_inputs import MissingInput, missing_inputs_of
from assets_app.queries.overdue import late_marks
from assets_app.queries.reason_texts import Reason
from assets_app.queries.reasons import reason_of
from assets_app.queries.staleness import newer_inputs
from assets_app.queries.validation_outcomes import outcomes_of_runs
from assets_app.scheduling.upstream_gaps import upstream_gaps_of
from assets_app.views.assets import (
    asset_for_page,
    can_be_backfilled,
    can_be_materialized,
    is_external,
)
from assets_app.views.partition_hint import partition_hint
from assets_app.views.partition_looks import look_of, window_of
from partitions_app.labels import (
    example_selection,
    key_named,
    label_of,
    label_of_key,
    listed_labels,
)
from slicewise.partitions import is_runtime
from slicewise.texts import masked_json, masked_text
from slicewise_server.web.live_fragments import is_poll, render_live
from slicewise_server.web.request_errors import InvalidRequest

_MATERIALIZE_HINT = "Materialize this partition, or start a backfill."
_MOST_NAMED = 6
_REPORT_HINT = "External asset. Report materializations here or through the API."


@login_required
@require_safe
def partition(request: HttpRequest, name: str, key: str = "") -> HttpResponse:
    """Render one partition: the status, the materializations and the inputs."""
    asset = asset_for_page(name)
    row = pages.partition_of(asset, key)
    if request.GET.get("fragment") == "hint":
        return partition_hint(request, asset, key, row)
    if row is None and (named_key := _key_of_label(asset, key)):
        return redirect("assets:partition", asset.name, named_key)
    window = window_of(asset, key) if row is None else None
    materializations = pages.materializations_of(row) if row else []
    runs = pages.runs_of_partition(row) if row else []
    outcomes = outcomes_of_runs(_run_ids(materializations, runs))
    last_run = row.last_run if row else None
    newer = newer_inputs(asset, [key]).get(key) if materializations else None
    now = database_now()
    mark = late_marks(asset, [key], now).get(key)
    late_inputs = late_inputs_of(asset, [key]).get(key, []) if materializations else []
    reason = reason_of(asset, key, now)
    context = {
        "reason": reason,
        "error": _error_beside(reason, row),
        "adjacent": adjacent_to(asset.definition, key, now),
        "followers": followers_of_partition(asset, key),
        "asset": asset,
        "key": key,
        "label": label_of(asset.definition, key),
        "row": row,
        "look": look_of(row, window, now, is_stale=newer is not None, mark=mark),
        "newer": newer,
        "materialized_by": _run_of_data(row, materializations),
        "mark": mark,
        "late_inputs": late_inputs,
        "missing_inputs": _missing_inputs(asset, row, materializations, late_inputs, now),
        "upstream_gaps": [
            upstream_gap
            for upstream_gap in upstream_gaps_of(asset, key, now)
            if upstream_gap.excluded or not (reason and reason.needs)
        ],
        "window_start": row.window_start if row else window and window.start,
        "window_end": row.window_end if row else window and window.end,
        "zone": _zone(asset),
        "materializations": materializations,
        "inputs": inputs_of(row, materializations[0]) if row and materializations else [],
        "runs": runs,
        "outcomes": outcomes,
        "validations": _of_last_attempt(pages.validations_of(last_run)) if last_run else [],
        "retryable_run": _retryable_run(row) if may(request.user, Action.MATERIALIZE) else None,
        "may_materialize": may(request.user, Action.MATERIALIZE) and can_be_materialized(asset),
        "may_backfill": can_be_backfilled(asset)
        and may_for_assets(request.user, Action.BACKFILL, [asset]),
        "may_report": may(request.user, Action.REPORT) and is_external(asset),
        "may_remove": is_runtime_partition(asset, key) and may(request.user, Action.PARTITIONS),
        "never_made_hint": _REPORT_HINT if is_external(asset) else _MATERIALIZE_HINT,
    }
    if request.htmx and not is_poll(request):  # type: ignore[attr-defined]
        return render(request, "assets_app/partition_panel.html", context)
    return render_live(request, "assets_app/partition.html", "partition", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_need(Action.MATERIALIZE)
def materialize_page(request: HttpRequest, name: str) -> HttpResponse:
    """Render the form and a preview of the typed selection, or carry out the request."""
    asset = asset_for_page(name)
    may_materialize = may(request.user, Action.MATERIALIZE) and can_be_materialized(asset)
    form = _form(asset, request, has_secrets=may_materialize)
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
        **_triggered(asset),
        "may_materialize": may_materialize,
    }
    template = "assets_app/materialize.html"
    if request.htmx and request.method == "GET":  # type: ignore[attr-defined]
        template += "#selected"
    return render(request, template, context, status=400 if request.method == "POST" else 200)


def _triggered(asset: Asset) -> dict[str, Any]:
    """Return the names of the first assets that data of the asset triggers, and the number of the
    rest.
    """
    edges = AssetDependency.objects.filter(
        upstream=asset, scheduling=True, downstream__active=True, downstream__paused=False
    )
    names = list(edges.order_by("downstream__name").values_list("downstream__name", flat=True))
    return {"triggered": names[:_MOST_NAMED], "more_triggered": len(names[_MOST_NAMED:])}


def _run_ids(history: Iterable[Materialization], runs: Iterable[RunPartition]) -> set[int]:
    """Return the ids of all runs in the history of a partition."""
    run_ids = {materialization.run_id for materialization in history}
    return {pk for pk in run_ids if pk is not None} | {run.run_id for run in runs}


def is_runtime_partition(asset: Asset, key: str) -> bool:
    """Return whether the key is a runtime partition of the asset, and so can be removed."""
    definition = asset.definition
    return is_runtime(definition) and key in definition.values.positions_by_text


def _form(asset: Asset, request: HttpRequest, *, has_secrets: bool) -> MaterializeForm:
    """Return the form; without ``has_secrets`` the secrets of declared params are masked."""
    version = asset.producer.current_version if asset.producer else None
    declared = version.spec.params if version else {}
    shape: dict[str, Any] = {
        "partitioned": asset.definition is not None,
        "params": declared if has_secrets else masked_json(declared),
    }
    if request.method == "POST":
        return MaterializeForm(request.POST, **shape)
    form = MaterializeForm(initial={"selection": request.GET.get("selection", "")}, **shape)
    if asset.definition is not None:
        example = example_selection(asset.definition, database_now())
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
        missing_keys = listed_labels(asset.definition, group.earlier_missing, 3)
        messages.warning(request, f"Previous partition not materialized yet: {missing_keys}.")
    if group.in_flight:
        held_keys = listed_labels(asset.definition, group.in_flight, 3)
        messages.warning(request, f"Left out, in progress in another run: {held_keys}.")
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


def _error_beside(reason: Reason | None, row: AssetPartition | None) -> str:
    """Return the error of the run that failed; empty if the reason has the whole error."""
    if row is None or row.last_run is None or row.state != PartitionState.FAILED:
        return ""
    error = masked_text(row.last_run.error).strip()
    return "" if reason is not None and error in reason.text else error


def _retryable_run(row: AssetPartition | None) -> Run | None:
    """Return the run that a retry of a failed partition starts again; None for other partitions."""
    if row is None or row.last_run is None or row.held_by is not None:
        return None
    is_failed = row.state == PartitionState.FAILED and can_retry(row.last_run)
    return row.last_run if is_failed else None


def _run_of_data(
    row: AssetPartition | None, materializations: Sequence[Materialization]
) -> int | None:
    """Return the run that wrote the data in place; None for data that no run has written."""
    if row is None or not materializations or materializations[0].version != row.version:
        return None
    return materializations[0].run_id


def _missing_inputs(
    asset: Asset,
    row: AssetPartition | None,
    materializations: Sequence[Materialization],
    late_inputs: Sequence[LateInputFact],
    now: datetime,
) -> list[MissingInput]:
    """Return the inputs that the data in place lacks, beside those that the schedule recorded."""
    if row is None or not materializations or materializations[0].version != row.version:
        return []
    explained = [late.asset.pk for late in late_inputs]
    return missing_inputs_of(asset, row, materializations[0], now, explained)


def _of_last_attempt(results: list[ValidationResult]) -> list[ValidationResult]:
    return [result for result in results if result.attempt_id == results[0].attempt_id]


def _key_of_label(asset: Asset, text: str) -> str:
    """Return the key text of the partition that pages call by this text, if that is another text.

    An empty text stands for no such partition.
    """
    named_key = key_named(asset.definition, text) if asset.definition and text else None
    return named_key.text if named_key is not None and named_key.text != text else ""


def _zone(asset: Asset) -> str:
    definition = asset.definition
    time_definition = None if definition is None else definition.time_dimension
    return "" if time_definition is None else time_definition.timezone

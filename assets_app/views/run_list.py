"""The list of runs: search, filters, order and groups."""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from accounts_app.policy import Action, may
from assets_app.execution.request.retrying import can_retry
from assets_app.models import Run, RunState, Trigger
from assets_app.queries.grouped_runs import MOST_RUNS, grouped_runs
from assets_app.queries.run_waits import awaited_by_run, values_of
from assets_app.views.run_filters import (
    FILTERS,
    MOST_SORTED,
    SORTS,
    SPANS,
    filters_of,
    is_cut,
    matching_runs,
    sorted_runs,
)
from slicewise_server.web.listing import address_of, page_of_rows, unchanged, version_of
from slicewise_server.web.typed_ids import is_id


@login_required
@require_safe
def runs(request: HttpRequest) -> HttpResponse:
    """Render all runs, newest first."""
    matching = matching_runs(request.GET)
    context = _listed(request, matching.rows) | {
        "states": RunState.choices,
        "triggers": Trigger.choices,
        "spans": [(name, label) for name, (label, _) in SPANS.items()],
        "filters": filters_of(request),
        "sorts": SORTS,
        "most_sorted": MOST_SORTED,
        "is_cut": is_cut(request.GET) and request.GET.get("by") != "request",
        "limit_texts": matching.limit_texts,
        "is_grouped": request.GET.get("by") == "request",
    }
    if context["is_grouped"]:
        context |= {"grouped": grouped_runs(matching.rows), "most_runs": MOST_RUNS}
    return render(request, "assets_app/runs.html", context)


@login_required
@require_safe
def runs_listed(request: HttpRequest) -> HttpResponse:
    """Render the part of the list that polling replaces: the same page with the same filters."""
    context = _listed(request, matching_runs(request.GET).rows)
    if answer := unchanged(request, context["version"]):
        return answer
    return render(request, "assets_app/runs.html#listed", context)


def _listed(request: HttpRequest, rows: QuerySet[Run]) -> dict[str, Any]:
    page = page_of_rows(request, sorted_runs(rows, request.GET))
    awaited = awaited_by_run(page.items)
    may_materialize = may(request.user, Action.MATERIALIZE)
    retryable = [run for run in page.items if can_retry(run)] if may_materialize else []
    # Runs that a person canceled are retried where a person asks for such runs.
    asked_state = request.GET.get("state") or RunState.FAILED
    group = request.GET.get("group", "")
    again = address_of(request, (*FILTERS, "sort", "page"))
    return {
        "retryable": [run.pk for run in retryable],
        "again_state": asked_state,
        "again_runs": [run.pk for run in retryable if run.state == asked_state],
        "again_group": group if retryable and is_id(group) else "",
        "page": page,
        "awaited": awaited,
        "version": _version(page.items, page.has_next, values_of(awaited)),
        "filtered": any(request.GET.get(name) for name in FILTERS),
        "again": again,
        "back": f"{reverse('assets:runs')}?{again}" if again else reverse("assets:runs"),
    }


def _version(rows: Sequence[Run], *more: object) -> str:
    """Return a digest of the values that a list shows of runs; the page itself counts the duration
    of a run onwards.
    """
    row_values = [
        (run.pk, run.state, run.error, run.partition_count, run.started_at, run.ended_at)
        for run in rows
    ]
    return version_of((row_values, more))

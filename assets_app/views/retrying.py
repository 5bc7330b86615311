"""Pages that confirm retries and re-runs of ended runs, with a choice of the code's version."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from accounts_app.page_policy import person_of, posts_need
from accounts_app.policy import Action
from assets_app.execution.request.retrying import Code, rerun, retry_run, retry_runs
from assets_app.models import Run, RunState
from slicewise_server.web.request_errors import InvalidRequest

MOST_SHOWN = 50
MOST_SAID = 5


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_need(Action.MATERIALIZE)
def run_retry(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for confirmation, then queue the run again."""
    run = get_object_or_404(_listed(), pk=pk)
    if request.method != "POST":
        return render(request, "assets_app/run_retry.html", {"run": run, **_versions(run)})
    try:
        retry_run(run, code=_code(request), user=person_of(request))
        messages.success(request, f"Retrying run {pk}.")
    except InvalidRequest as refused:
        messages.error(request, str(refused))
    return redirect("assets:run", pk)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_need(Action.MATERIALIZE)
def run_rerun(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for confirmation, then create a new run of the same partitions and show that run."""
    run = get_object_or_404(_listed(), pk=pk)
    if request.method != "POST":
        return render(request, "assets_app/run_rerun.html", {"run": run, **_versions(run)})
    try:
        group = rerun(run, code=_code(request), user=person_of(request))
    except InvalidRequest as refused:
        messages.error(request, str(refused))
        return redirect("assets:run", pk)
    new_run = group.runs.get()
    messages.success(request, f"Started run {new_run.pk} (re-run of {pk}).")
    if group.in_flight:
        skipped_keys = ", ".join(group.in_flight[:MOST_SAID])
        messages.warning(request, f"Skipped, already in progress: {skipped_keys}.")
    return redirect("assets:run", new_run.pk)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_need(Action.MATERIALIZE)
def runs_retry(request: HttpRequest) -> HttpResponse:
    """Ask for confirmation, then retry the named runs, or all failed runs of a group."""
    ids = _requested_ids(request)
    if not ids:
        messages.error(request, "No run selected.")
        return redirect("assets:runs")
    if request.method != "POST":
        runs = list(_listed().filter(pk__in=ids).order_by("-id")[: MOST_SHOWN + 1])
        context = {"runs": runs[:MOST_SHOWN], "ids": ids, "runs_cut": len(runs) > MOST_SHOWN}
        return render(request, "assets_app/runs_retry.html", context)
    try:
        retried = retry_runs(ids, code=_code(request), user=person_of(request))
    except InvalidRequest as refused:
        messages.error(request, str(refused))
        return redirect("assets:runs")
    number = len(retried.runs)
    messages.success(request, f"Retrying {number} run{'' if number == 1 else 's'}.")
    for reason in list(retried.refused.values())[:MOST_SAID]:
        messages.warning(request, reason)
    if len(retried.refused) > MOST_SAID:
        hidden_count = len(retried.refused) - MOST_SAID
        messages.warning(request, f"{hidden_count} more skipped.")
    return redirect(f"{reverse('assets:runs')}?{request.GET.urlencode()}")


def _requested_ids(request: HttpRequest) -> list[int]:
    source = request.POST if request.method == "POST" else request.GET
    named_ids = [int(text) for text in source.getlist("run") if _is_id(text)]
    group = request.GET.get("group", "")
    if named_ids or not _is_id(group):
        return named_ids
    failed = Run.objects.filter(group=int(group), state=RunState.FAILED).order_by("id")
    return list(failed.values_list("id", flat=True))


def _listed() -> QuerySet[Run]:
    rows = Run.objects.listed().select_related(
        "producer_version", "asset__producer__current_version"
    )
    return rows.defer("producer_version__source", "asset__producer__current_version__source")


def _versions(run: Run) -> dict[str, Any]:
    producer = run.asset.producer
    newest = producer.current_version if producer else None
    return {"newest": newest if newest and newest.pk != run.producer_version_id else None}


def _code(request: HttpRequest) -> str:
    return request.POST.get("code", Code.SAME.value)


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 19

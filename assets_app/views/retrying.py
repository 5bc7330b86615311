"""Pages that confirm retries and re-runs of ended runs, with a choice of the code's version."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from accounts_app.page_policy import person_of, posts_need
from accounts_app.policy import Action
from assets_app.execution.request.retrying import Code, rerun, retry_run, retry_runs
from assets_app.models import Run, RunState
from assets_app.queries.code_choices import code_choice_of_runs
from assets_app.queries.error_groups import runs_failed_alike, unresolved_failures
from assets_app.views.run_filters import read_instant
from partitions_app.labels import listed_labels
from slicewise.texts import counted
from slicewise_server.web.request_errors import InvalidRequest
from slicewise_server.web.typed_ids import ids_of, is_id

MOST_SHOWN = 50
MOST_SAID = 5
MOST_LISTED = 200
# A path of this site. A second slash would begin the name of a host, browsers take a backslash for
# a slash, and leave out tabs and line breaks.
_OF_SITE = re.compile(r"/(?:[^/\\\s][^\\\s]*)?")


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_need(Action.MATERIALIZE)
def run_retry(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for confirmation, then queue the run again."""
    run = get_object_or_404(Run.objects.listed(), pk=pk)
    if request.method != "POST":
        return render(request, "assets_app/run_retry.html", _context(run))
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
    run = get_object_or_404(Run.objects.listed(), pk=pk)
    if request.method != "POST":
        return render(request, "assets_app/run_rerun.html", _context(run))
    try:
        group = rerun(run, code=_code(request), user=person_of(request))
    except InvalidRequest as refused:
        messages.error(request, str(refused))
        return redirect("assets:run", pk)
    new_run = group.runs.get()
    messages.success(request, f"Started run {new_run.pk} (re-run of {pk}).")
    if group.in_flight:
        held_keys = listed_labels(run.asset.definition, group.in_flight, MOST_SAID)
        messages.warning(request, f"Left out, in progress in another run: {held_keys}.")
    return redirect("assets:run", new_run.pk)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_need(Action.MATERIALIZE)
def runs_retry(request: HttpRequest) -> HttpResponse:
    """Ask for confirmation, then retry the named runs, the failed runs of a group, or the
    unresolved runs that failed since an instant: all, or those with the error of a named run.
    """
    ids = _requested_ids(request)
    if not ids:
        messages.error(request, "No run selected.")
        return redirect("assets:runs")
    if request.method != "POST":
        runs = list(Run.objects.listed().filter(pk__in=ids).order_by("-id")[: MOST_SHOWN + 1])
        context = {
            "runs": runs[:MOST_SHOWN],
            "ids": ids,
            "runs_cut": len(runs) > MOST_SHOWN,
            "choice": code_choice_of_runs(ids),
            "back": _page_before(request),
        }
        return render(request, "assets_app/runs_retry.html", context)
    try:
        retried = retry_runs(ids, code=_code(request), user=person_of(request))
    except InvalidRequest as refused:
        messages.error(request, str(refused))
        return redirect(_page_before(request))
    number = len(retried.runs)
    messages.success(request, f"Retrying {counted(number, 'run')}.")
    for reason in list(retried.refused.values())[:MOST_SAID]:
        messages.warning(request, reason)
    if len(retried.refused) > MOST_SAID:
        hidden_count = len(retried.refused) - MOST_SAID
        messages.warning(request, f"{hidden_count} more skipped.")
    return redirect(_list_of(request, retried.runs))


def _page_before(request: HttpRequest) -> str:
    """Return the address of the page that a person came from: of this site, or the list of runs."""
    back = request.GET.get("back", "")
    return back if _OF_SITE.fullmatch(back) else reverse("assets:runs")


def _list_of(request: HttpRequest, run_ids: Sequence[int]) -> str:
    """Return the address of the list of these runs, or of their group; of all runs if the runs are
    too many for an address.
    """
    group = request.GET.get("group", "")
    runs = reverse("assets:runs")
    if is_id(group):
        return f"{runs}?group={group}"
    if not run_ids or len(run_ids) > MOST_LISTED:
        return runs
    return f"{runs}?id={','.join(map(str, run_ids))}"


def _requested_ids(request: HttpRequest) -> list[int]:
    source = request.POST if request.method == "POST" else request.GET
    named_ids = ids_of(source.getlist("run"))
    group, since = request.GET.get("group", ""), read_instant(request.GET.get("failed_since", ""))
    if not named_ids and since is not None:
        return _unresolved_ids(request.GET.get("like", ""), since)
    if named_ids or not is_id(group):
        return named_ids
    failed = Run.objects.filter(group=int(group), state=RunState.FAILED).order_by("id")
    return list(failed.values_list("id", flat=True))


def _unresolved_ids(like: str, since: datetime) -> list[int]:
    """Return the unresolved runs that failed since the instant: all, or those that failed like the
    named run.
    """
    if like:
        return runs_failed_alike(int(like), since) if is_id(like) else []
    return [pk for group in unresolved_failures(since) for pk in group.retryable_ids]


def _context(run: Run) -> dict[str, Any]:
    return {"run": run, "choice": code_choice_of_runs([run.pk])}


def _code(request: HttpRequest) -> str:
    return request.POST.get("code", Code.SAME.value)

"""The pages of runs: the list, one run with log and partitions, and canceling."""

from collections.abc import Sequence
from datetime import datetime
from itertools import chain
from typing import Any
from zlib import crc32

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from accounts_app.models import AuditEntry
from accounts_app.page_policy import person_of, posts_need
from accounts_app.policy import Action, may
from assets_app.execution.queue.control import cancel_run
from assets_app.execution.request.retrying import can_retry
from assets_app.models import (
    TERMINAL_STATES,
    Run,
    RunAttempt,
    RunGroup,
    RunPartition,
    RunState,
    ScheduleTick,
    Trigger,
)
from assets_app.queries import pages
from assets_app.queries.lookups import partitions_of_run
from partitions_app.templatetags.slicewise_pages import lasted
from slicewise.runner.messages import is_web_address
from slicewise.texts import masked_blocks
from slicewise_server.web.listing import STOP_POLLING, address_of, page_of_rows, unchanged
from slicewise_server.web.request_errors import InvalidRequest

# On the page of a run; a page of its own lists all partitions of a run.
MOST_PARTITIONS = 20
_PARTITIONS_AT_ONCE = 100
MOST_ENTRIES = 20
MOST_VALIDATIONS = 200
FILTERS = ("asset", "state", "trigger", "group", "tick", "created_after", "created_before")
_CANCELABLE = (RunState.WAITING, RunState.QUEUED, RunState.DISPATCHED, RunState.RUNNING)


@login_required
@require_safe
def runs(request: HttpRequest) -> HttpResponse:
    """Render all runs, newest first."""
    group = request.GET.get("group", "")
    context = _listed(request) | {
        "states": RunState.choices,
        "triggers": Trigger.choices,
        "created_after": _moment(request.GET.get("created_after", "")),
        "created_before": _moment(request.GET.get("created_before", "")),
        "group": RunGroup.objects.filter(pk=group).first() if _is_id(group) else None,
        "tick": _tick(request.GET.get("tick", "")),
    }
    return render(request, "assets_app/runs.html", context)


@login_required
@require_safe
def runs_listed(request: HttpRequest) -> HttpResponse:
    """Render the part of the list that polling replaces: the same page with the same filters."""
    context = _listed(request)
    if answer := unchanged(request, context["version"]):
        return answer
    return render(request, "assets_app/runs.html#listed", context)


@login_required
@require_safe
def run(request: HttpRequest, pk: int) -> HttpResponse:
    """Render one run, with the end of the log."""
    run_row = _run(pk)
    log = pages.log_tail(run_row)
    context = _status(request, run_row) | {
        "log": log,
        "after": _cursor_text(log, ""),
        "log_cut": len(log) == pages.LOG_PIECES_PER_PAGE,
    }
    return render(request, "assets_app/run.html", context)


@login_required
@require_safe
def run_status(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the part of the page that changes while the run is executed."""
    context = _status(request, _run(pk))
    if answer := unchanged(request, context["version"]):
        return answer
    status = STOP_POLLING if context["ended"] else 200
    return render(request, "assets_app/run.html#status", context, status=status)


@login_required
@require_safe
def run_log(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the log after the reader's last piece; polling stops after the end of the run."""
    run_row = _run(pk)
    after = request.GET.get("after", "")
    log = pages.log_after(run_row, _cursor(after))
    ended = run_row.state in TERMINAL_STATES and len(log) < pages.LOG_PIECES_PER_PAGE
    if not log and not ended:
        return HttpResponse(status=204)
    context = {"run": run_row, "log": log, "after": _cursor_text(log, after), "ended": ended}
    status = STOP_POLLING if ended else 200
    return render(request, "assets_app/run.html#log", context, status=status)


@login_required
@require_safe
def run_partitions(request: HttpRequest, pk: int) -> HttpResponse:
    """Render all partitions of a run, or the partitions in one state, a page at a time."""
    run_row = _run(pk)
    rows = _partitions(run_row)
    if state := request.GET.get("state", ""):
        rows = rows.filter(state=state)
    context = {
        "run": run_row,
        "run_label": f"Run {pk}",
        "page": page_of_rows(request, rows, _PARTITIONS_AT_ONCE),
        "states": RunPartition.State.choices,
        "several_assets": len(run_row.producer_version.outlets) > 1,
        "ended": run_row.state in TERMINAL_STATES,
    }
    return render(request, "assets_app/run_partitions.html", context)


@login_required
@require_safe
def run_log_file(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """Return the whole log as a text file."""
    rows = pages.whole_log(_run(pk)).values_list("text", flat=True)
    # A few rows at a time, each masked in blocks: the first bytes need not wait for the whole log.
    texts = rows.iterator(chunk_size=8)
    pieces = chain.from_iterable(map(masked_blocks, texts))
    answer = StreamingHttpResponse(pieces, content_type="text/plain; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="run-{pk}.log"'
    return answer


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_need(Action.CANCEL)
def run_cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for confirmation, then cancel the run."""
    run_row = _run(pk)
    if request.method != "POST":
        return render(request, "assets_app/run_cancel.html", {"run": run_row})
    try:
        canceled = cancel_run(run_row, user=person_of(request))
        messages.success(request, f"Run {pk} is {canceled.get_state_display().lower()}.")
    except InvalidRequest as refused:
        messages.error(request, str(refused))
    return redirect("assets:run", pk)


def _run(pk: int) -> Run:
    rows = Run.objects.listed().select_related("producer_version__bundle_version__bundle", "tick")
    return get_object_or_404(rows.defer("producer_version__bundle_version__archive"), pk=pk)


def _status(request: HttpRequest, run: Run) -> dict[str, Any]:
    attempts = list(run.attempts.select_related("gateway").order_by("number"))
    partitions = list(_partitions(run)[: MOST_PARTITIONS + 1])
    failed_attempt = next((attempt for attempt in reversed(attempts) if attempt.traceback), None)
    validations = pages.validations_of(run, MOST_VALIDATIONS + 1)
    last_attempt_id = attempts[-1].pk if attempts else None
    application = next((attempt for attempt in reversed(attempts) if attempt.application_id), None)
    # An open page is updated when one of these values changes, and not otherwise.
    marks = [
        run.state,
        run.attempt_count,
        len(attempts),
        len(validations),
        application.number if application else 0,
    ]
    return {
        "run": run,
        "attempts": attempts,
        "partitions": partitions[:MOST_PARTITIONS],
        "partitions_cut": len(partitions) > MOST_PARTITIONS,
        "published_in_part": _published_in_part(run),
        "several_assets": len(run.producer_version.outlets) > 1,
        "validations": validations[:MOST_VALIDATIONS],
        "validations_cut": len(validations) > MOST_VALIDATIONS,
        "validations_tried": len({result.attempt_id for result in validations}) > 1,
        "stopped_by_data": any(
            result.blocks and result.attempt_id == last_attempt_id for result in validations
        ),
        "traceback": failed_attempt.traceback if failed_attempt else "",
        "application": application,
        "application_link": _link(application),
        "ended": run.state in TERMINAL_STATES,
        "version": "-".join(map(str, marks)),
        "may_cancel": may(request.user, Action.CANCEL) and run.state in _CANCELABLE,
        **_retry_context(request, run),
    }


def _link(application: RunAttempt | None) -> str:
    """Return the address of Spark's pages; empty for an address that browsers would execute."""
    address = application.application_ui if application else ""
    return address if is_web_address(address) else ""


def _partitions(run: Run) -> QuerySet[RunPartition]:
    """Return the partitions of a run in order, with assets."""
    rows = partitions_of_run(run).select_related("slice__asset__partition_definition")
    return rows.defer("slice__asset__partition_definition__spec").order_by("position")


def _published_in_part(run: Run) -> int:
    """Return the number of partitions that a failed run has published."""
    if run.state != RunState.FAILED:
        return 0
    published = run.partitions.filter(slice__asset=run.asset_id, state=RunPartition.State.SUCCEEDED)
    return published.count()


def _retry_context(request: HttpRequest, run: Run) -> dict[str, Any]:
    may_make = may(request.user, Action.MATERIALIZE)
    trail = AuditEntry.objects.filter(subject_type="run", subject=str(run.pk))
    return {
        "may_retry": may_make and can_retry(run),
        # Also for a run that a backfill counts, and that therefore cannot be retried.
        "may_rerun": may_make and run.state in TERMINAL_STATES,
        "trail": list(trail[:MOST_ENTRIES]),
    }


def _listed(request: HttpRequest) -> dict[str, Any]:
    page = page_of_rows(request, _matching(request))
    may_make = may(request.user, Action.MATERIALIZE)
    retryable = [run.pk for run in page.items if can_retry(run)] if may_make else []
    group = request.GET.get("group", "")
    return {
        "retryable": retryable,
        "again_group": group if retryable and _is_id(group) else "",
        "page": page,
        "version": _version(page.items, page.has_next),
        "filtered": any(request.GET.get(name) for name in FILTERS),
        "again": address_of(request, (*FILTERS, "page")),
    }


def _version(rows: Sequence[Run], *more: object) -> str:
    """Return a digest of all values that a list shows of runs, including the durations so far."""
    row_values = [
        (run.pk, run.state, run.error, run.partition_count, lasted(run.started_at, run.ended_at))
        for run in rows
    ]
    return f"{crc32(repr((row_values, more)).encode()):08x}"


def _matching(request: HttpRequest) -> QuerySet[Run]:
    rows = Run.objects.listed()
    if state := request.GET.get("state"):
        rows = rows.filter(state=state)
    if trigger := request.GET.get("trigger"):
        rows = rows.filter(trigger=trigger)
    if asset := request.GET.get("asset", "").strip():
        rows = rows.filter(asset__name__icontains=asset)
    if group := request.GET.get("group"):
        rows = rows.filter(group=int(group)) if _is_id(group) else rows.none()
    if tick := request.GET.get("tick"):
        rows = rows.filter(tick=int(tick)) if _is_id(tick) else rows.none()
    # The same bounds as in the API.
    if after := _moment(request.GET.get("created_after", "")):
        rows = rows.filter(created_at__gte=after)
    if before := _moment(request.GET.get("created_before", "")):
        rows = rows.filter(created_at__lt=before)
    return rows.order_by("-id")


def _tick(text: str) -> ScheduleTick | None:
    """Return the tick of that number, with the schedule's producer; None for a wrong number."""
    ticks = ScheduleTick.objects.select_related("schedule__producer")
    return ticks.filter(pk=text).first() if _is_id(text) else None


def _moment(text: str) -> datetime | None:
    """Parse an instant with an offset, as written in links; return None for any other text."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    return instant if instant.tzinfo is not None and instant.year in range(1000, 9000) else None


def _is_id(text: str) -> bool:
    return text.isdecimal() and len(text) < 19


def _cursor(text: str) -> pages.Cursor:
    attempt, _, sequence = text.partition(".")
    return (int(attempt), int(sequence)) if _is_id(attempt) and _is_id(sequence) else (0, 0)


def _cursor_text(log: Any, previous_text: str) -> str:
    return f"{log[-1].attempt.number}.{log[-1].sequence}" if log else previous_text

"""Runs: the list, the page of one with its log, and stopping it."""

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

from accounts_app.errors import InvalidRequest
from accounts_app.models import AuditEntry, User
from accounts_app.policy import Action, may
from assets_app.execution.control import cancel_run
from assets_app.execution.retrying import can_retry
from assets_app.models import (
    DISCOVERY,
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
from assets_app.views.listing import STOP_POLLING, address_of, paged, unchanged
from partitions_app.templatetags.slicewise_pages import lasted
from slicewise.masking import masked_blocks
from slicewise.runner.messages import is_web_address

# On the page of a run; all of them have a page of their own, so many at a time.
MOST_PARTITIONS = 20
_PARTITIONS_AT_ONCE = 100
MOST_ENTRIES = 20
MOST_VALIDATIONS = 200
FILTERS = ("asset", "state", "trigger", "group", "tick", "created_after", "created_before")
_CANCELABLE = (RunState.WAITING, RunState.QUEUED, RunState.DISPATCHED, RunState.RUNNING)


@login_required
@require_safe
def runs(request: HttpRequest) -> HttpResponse:
    """All runs, newest first."""
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
    """The part of the list that changes by itself: the same page of what the filters leave."""
    context = _listed(request)
    if answer := unchanged(request, context["version"]):
        return answer
    return render(request, "assets_app/runs.html#listed", context)


@login_required
@require_safe
def run(request: HttpRequest, pk: int) -> HttpResponse:
    """One run, with the end of its log."""
    found = _run(pk)
    log = pages.log_tail(found)
    context = _status(request, found) | {
        "log": log,
        "after": _cursor_text(log, ""),
        "log_cut": len(log) == pages.LOG_PIECES_PER_PAGE,
    }
    return render(request, "assets_app/run.html", context)


@login_required
@require_safe
def run_status(request: HttpRequest, pk: int) -> HttpResponse:
    """The part of the page that changes while it runs."""
    context = _status(request, _run(pk))
    if answer := unchanged(request, context["version"]):
        return answer
    status = STOP_POLLING if context["ended"] else 200
    return render(request, "assets_app/run.html#status", context, status=status)


@login_required
@require_safe
def run_log(request: HttpRequest, pk: int) -> HttpResponse:
    """What was printed after a piece that the reader has; ends when the run has."""
    found = _run(pk)
    after = request.GET.get("after", "")
    log = pages.log_after(found, _cursor(after))
    ended = found.state in TERMINAL_STATES and len(log) < pages.LOG_PIECES_PER_PAGE
    if not log and not ended:
        return HttpResponse(status=204)
    context = {"run": found, "log": log, "after": _cursor_text(log, after), "ended": ended}
    status = STOP_POLLING if ended else 200
    return render(request, "assets_app/run.html#log", context, status=status)


@login_required
@require_safe
def run_partitions(request: HttpRequest, pk: int) -> HttpResponse:
    """All partitions of a run, or those in one state, a page at a time."""
    found = _run(pk)
    rows = _partitions(found)
    if state := request.GET.get("state", ""):
        rows = rows.filter(state=state)
    context = {
        "run": found,
        "run_label": f"Run {pk}",
        "page": paged(request, rows, _PARTITIONS_AT_ONCE),
        "states": RunPartition.State.choices,
        "several_assets": len(found.producer_version.outlets) > 1,
        "ended": found.state in TERMINAL_STATES,
    }
    return render(request, "assets_app/run_partitions.html", context)


@login_required
@require_safe
def run_log_file(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """The whole log as a text file."""
    rows = pages.whole_log(_run(pk)).values_list("text", flat=True)
    # A few rows at a time, and each masked in blocks: the first bytes are not to wait for all.
    texts = rows.iterator(chunk_size=8)
    pieces = chain.from_iterable(map(masked_blocks, texts))
    answer = StreamingHttpResponse(pieces, content_type="text/plain; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="run-{pk}.log"'
    return answer


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def run_cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """Asks whether it is meant, then stops the run."""
    found = _run(pk)
    if request.method != "POST":
        return render(request, "assets_app/run_cancel.html", {"run": found})
    assert isinstance(request.user, User)  # noqa: S101  (login_required)
    try:
        canceled = cancel_run(found, user=request.user)
        messages.success(request, f"Run {pk} is {canceled.get_state_display().lower()}.")
    except InvalidRequest as refused:
        messages.error(request, str(refused))
    return redirect("assets:run", pk)


def _run(pk: int) -> Run:
    rows = Run.objects.listed().select_related("producer_version__bundle_version__bundle", "tick")
    return get_object_or_404(rows.defer("producer_version__bundle_version__archive"), pk=pk)


def _status(request: HttpRequest, run: Run) -> dict[str, Any]:
    attempts = list(run.attempts.select_related("gateway").order_by("number"))
    parts = list(_partitions(run)[: MOST_PARTITIONS + 1])
    failed = next((one for one in reversed(attempts) if one.traceback), None)
    validations = pages.validations_of(run, MOST_VALIDATIONS + 1)
    last = attempts[-1].pk if attempts else None
    application = next((one for one in reversed(attempts) if one.application_id), None)
    # What changes with none of these is not told to who looks already.
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
        "partitions": parts[:MOST_PARTITIONS],
        "partitions_cut": len(parts) > MOST_PARTITIONS,
        "published_in_part": _published_in_part(run),
        "several_assets": len(run.producer_version.outlets) > 1,
        "validations": validations[:MOST_VALIDATIONS],
        "validations_cut": len(validations) > MOST_VALIDATIONS,
        "validations_tried": len({one.attempt_id for one in validations}) > 1,
        "stopped_by_data": any(one.blocks and one.attempt_id == last for one in validations),
        "traceback": failed.traceback if failed else "",
        "application": application,
        "application_link": _link(application),
        "ended": run.state in TERMINAL_STATES,
        "version": "-".join(map(str, marks)),
        "may_cancel": may(request.user, Action.CANCEL) and run.state in _CANCELABLE,
        **_once_more(request, run),
    }


def _link(application: RunAttempt | None) -> str:
    """Return the address of Spark's pages; nothing for an address that browsers would execute."""
    address = application.application_ui if application else ""
    return address if is_web_address(address) else ""


def _partitions(run: Run) -> QuerySet[RunPartition]:
    """The partitions that a run makes, in order, with their assets."""
    rows = run.partitions.select_related("slice__asset__partition_definition")
    rows = rows.exclude(slice__identity=DISCOVERY)
    return rows.defer("slice__asset__partition_definition__spec").order_by("position")


def _published_in_part(run: Run) -> int:
    """How many partitions a run has published that failed all the same."""
    if run.state != RunState.FAILED:
        return 0
    made = run.partitions.filter(slice__asset=run.asset_id, state=RunPartition.State.SUCCEEDED)
    return made.count()


def _once_more(request: HttpRequest, run: Run) -> dict[str, Any]:
    may_make = may(request.user, Action.MATERIALIZE)
    trail = AuditEntry.objects.filter(subject_type="run", subject=str(run.pk))
    return {
        "may_retry": may_make and can_retry(run),
        # Also of what cannot be retried, since a backfill counts it.
        "may_rerun": may_make and run.state in TERMINAL_STATES,
        "trail": list(trail[:MOST_ENTRIES]),
    }


def _listed(request: HttpRequest) -> dict[str, Any]:
    page = paged(request, _matching(request))
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
    """Changes with everything that a list shows of runs, also with how long they have been on."""
    shown = [
        (run.pk, run.state, run.error, run.partition_count, lasted(run.started_at, run.ended_at))
        for run in rows
    ]
    return f"{crc32(repr((shown, more)).encode()):08x}"


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
    # As the API has them.
    if after := _moment(request.GET.get("created_after", "")):
        rows = rows.filter(created_at__gte=after)
    if before := _moment(request.GET.get("created_before", "")):
        rows = rows.filter(created_at__lt=before)
    return rows.order_by("-id")


def _tick(text: str) -> ScheduleTick | None:
    """The tick of that number, with what says whose it is."""
    ticks = ScheduleTick.objects.select_related("schedule__producer")
    return ticks.filter(pk=text).first() if _is_id(text) else None


def _moment(text: str) -> datetime | None:
    """An instant with its offset, as links write it; None for anything else."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo is not None and at.year in range(1000, 9000) else None


def _is_id(text: str) -> bool:
    return text.isdecimal() and len(text) < 19


def _cursor(text: str) -> pages.Cursor:
    attempt, _, sequence = text.partition(".")
    return (int(attempt), int(sequence)) if _is_id(attempt) and _is_id(sequence) else (0, 0)


def _cursor_text(log: Any, before: str) -> str:
    return f"{log[-1].attempt.number}.{log[-1].sequence}" if log else before

"""The page of a run with log and partitions, and canceling."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from accounts_app.models import AuditEntry
from accounts_app.page_policy import person_of, posts_need
from accounts_app.policy import Action, may
from assets_app.execution.queue.control import CANCELABLE_STATES, cancel_run
from assets_app.execution.request.retrying import can_retry
from assets_app.models import (
    TERMINAL_STATES,
    Run,
    RunAttempt,
    RunPartition,
    RunState,
)
from assets_app.queries import pages
from assets_app.queries.clock import database_now
from assets_app.queries.log_attempts import chunks_with_attempts
from assets_app.queries.lookups import partitions_of_run
from assets_app.queries.queue_waits import queue_wait_of
from assets_app.queries.retry_objections import objection_to_retry
from assets_app.queries.run_logs import LEVELS, cursor_text, log_tail
from assets_app.queries.run_waits import awaited_by_run, values_of
from assets_app.views.declared_limits import declared_limits
from slicewise.texts import is_web_address
from slicewise_server.web.listing import (
    STOP_POLLING,
    page_of_rows,
    unchanged,
    version_of,
)
from slicewise_server.web.request_errors import InvalidRequest

# On the page of a run; a page of its own lists all partitions of a run.
MOST_PARTITIONS = 20
_PARTITIONS_AT_ONCE = 100
MOST_ENTRIES = 20
MOST_VALIDATIONS = 200


@login_required
@require_safe
def run(request: HttpRequest, pk: int) -> HttpResponse:
    """Render one run, with the end of the log."""
    run_row = run_for_page(pk)
    log = log_tail(run_row)
    status, more = _status(request, run_row), _more(run_row)
    context = (
        more
        | status
        | {
            "more_version": more["version"],
            "log": list(chunks_with_attempts(log.blocks)),
            "after": cursor_text(log.blocks),
            "log_cut": log.is_cut,
            "levels": [(name, label) for name, (label, _) in LEVELS.items()],
        }
    )
    return render(request, "assets_app/run.html", context)


@login_required
@require_safe
def run_status(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the parts of the page that change while the run is executed: above the log, and the
    facts below the log.
    """
    context = _status(request, run_for_page(pk))
    if answer := unchanged(request, context["version"]):
        return answer
    status = STOP_POLLING if context["ended"] else 200
    context["is_poll"] = True
    return render(request, "assets_app/run.html#polled", context, status=status)


@login_required
@require_safe
def run_more(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the part below the log, which changes while the run is executed."""
    context = _more(run_for_page(pk))
    context["more_version"] = context["version"]
    if answer := unchanged(request, context["version"]):
        return answer
    status = STOP_POLLING if context["ended"] else 200
    return render(request, "assets_app/run.html#more", context, status=status)


@login_required
@require_safe
def run_partitions(request: HttpRequest, pk: int) -> HttpResponse:
    """Render all partitions of a run, or the partitions in one state, a page at a time."""
    run_row = run_for_page(pk)
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
@require_http_methods(["GET", "HEAD", "POST"])
@posts_need(Action.CANCEL)
def run_cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for confirmation, then cancel the run."""
    run_row = run_for_page(pk)
    if request.method != "POST":
        return render(request, "assets_app/run_cancel.html", {"run": run_row})
    try:
        canceled = cancel_run(run_row, user=person_of(request))
        messages.success(request, f"Run {pk} is {canceled.get_state_display().lower()}.")
    except InvalidRequest as refused:
        messages.error(request, str(refused))
    return redirect("assets:run", pk)


def run_for_page(pk: int) -> Run:
    """Return the run with all that pages of a run show; or raise 404."""
    rows = Run.objects.listed().select_related("producer_version__bundle_version__bundle", "tick")
    return get_object_or_404(rows.defer("producer_version__bundle_version__archive"), pk=pk)


def _status(request: HttpRequest, run: Run) -> dict[str, Any]:
    """Return the context of the part above the log, and of the facts below the log."""
    attempts = list(run.attempts.select_related("gateway").order_by("number"))
    failed_attempt = next((attempt for attempt in reversed(attempts) if attempt.traceback), None)
    last_attempt_id = attempts[-1].pk if attempts else None
    application = next((attempt for attempt in reversed(attempts) if attempt.application_id), None)
    # An open page is updated when one of these values changes, and not otherwise.
    marks = [
        run.state,
        run.attempt_count,
        len(attempts),
        application.number if application else 0,
        is_retried := _is_retried(run),
    ]
    queue_wait = queue_wait_of(run, database_now())
    awaited = awaited_by_run([run])
    marks += [queue_wait, values_of(awaited)]
    published_count = _published_count(run)
    stopped_by_data = any(
        result.blocks and result.attempt_id == last_attempt_id
        for result in pages.validations_of(run, MOST_VALIDATIONS + 1)
    )
    return {
        "run": run,
        "published_count": published_count,
        "has_previous_data": bool(published_count or stopped_by_data) and _has_previous_data(run),
        "stopped_by_data": stopped_by_data,
        "traceback": failed_attempt.traceback if failed_attempt else "",
        "application": application,
        "application_link": _link(application),
        "limits": declared_limits(run.producer_version.spec),
        "ended": run.state in TERMINAL_STATES,
        "is_retried": is_retried,
        "queue_wait": queue_wait,
        "awaited": awaited.get(run.pk),
        "version": version_of(marks),
        "may_cancel": may(request.user, Action.CANCEL) and run.state in CANCELABLE_STATES,
        **_retry_context(request, run),
    }


def _is_retried(run: Run) -> bool:
    """Return whether an attempt follows a failed attempt of the run, or is active already.

    A paused backfill lets active runs go on, and starts no run.
    """
    if run.state in (*TERMINAL_STATES, RunState.CANCELING):
        return False
    return not (run.group.paused and run.state in (RunState.WAITING, RunState.QUEUED))


def _more(run: Run) -> dict[str, Any]:
    """Return the context of the part below the log: validations, attempts, partitions, audit."""
    attempts = list(run.attempts.select_related("gateway").order_by("number"))
    partitions = list(_partitions(run)[: MOST_PARTITIONS + 1])
    validations = pages.validations_of(run, MOST_VALIDATIONS + 1)
    entries = AuditEntry.objects.filter(subject_type="run", subject=str(run.pk))
    trail = list(entries[:MOST_ENTRIES])
    steps = pages.steps_of(run) if run.producer_version.spec.step_names else []
    outcomes = [(attempt.number, attempt.outcome) for attempt in attempts]
    states = [step.state for step in steps]
    marks = [run.state, outcomes, len(validations), len(trail), states]
    return {
        "run": run,
        "attempts": attempts,
        "steps": steps,
        "partitions": partitions[:MOST_PARTITIONS],
        "partitions_cut": len(partitions) > MOST_PARTITIONS,
        "published_count": _published_count(run),
        "several_assets": len(run.producer_version.outlets) > 1,
        "validations": validations[:MOST_VALIDATIONS],
        "validations_cut": len(validations) > MOST_VALIDATIONS,
        "validations_tried": len({result.attempt_id for result in validations}) > 1,
        "ended": run.state in TERMINAL_STATES,
        "version": version_of(marks),
        "trail": trail,
    }


def _link(application: RunAttempt | None) -> str:
    """Return the address of Spark's pages; empty for an address that browsers would execute."""
    address = application.application_ui if application else ""
    return address if is_web_address(address) else ""


def _partitions(run: Run) -> QuerySet[RunPartition]:
    """Return the partitions of a run in order, with assets."""
    rows = partitions_of_run(run).select_related("partition__asset__partition_definition")
    return rows.defer("partition__asset__partition_definition__spec").order_by("position")


def _published_count(run: Run) -> int:
    """Return the number of partitions that a failed run has published."""
    if run.state != RunState.FAILED:
        return 0
    published = run.partitions.filter(
        partition__asset=run.asset_id, state=RunPartition.State.SUCCEEDED
    )
    return published.count()


def _has_previous_data(run: Run) -> bool:
    """Return whether a failed run left data in place: some partition that the run did not publish
    has data from before the end of the run.
    """
    if run.state != RunState.FAILED:
        return False
    unpublished = run.partitions.exclude(state=RunPartition.State.SUCCEEDED)
    return unpublished.filter(
        partition__version__gt=0, partition__materialized_at__lte=run.ended_at
    ).exists()


def _retry_context(request: HttpRequest, run: Run) -> dict[str, Any]:
    may_materialize = may(request.user, Action.MATERIALIZE)
    may_retry = may_materialize and can_retry(run)
    objection = objection_to_retry(run) if may_retry else ""
    return {
        "may_retry": may_retry and not objection,
        "retry_objection": objection,
        # Also for a run that a backfill counts, and that therefore cannot be retried.
        "may_rerun": may_materialize and run.state in TERMINAL_STATES,
    }

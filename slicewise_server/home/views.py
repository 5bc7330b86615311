"""The overview: problems that need a person, the runs of the last day, and active work."""

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts_app.policy import Action, may
from assets_app.models import Gateway, Queue
from assets_app.queries.clock import database_now
from assets_app.queries.error_groups import unresolved_failures, with_streaks
from assets_app.queries.gateways import (
    gateway_statuses,
    queues_without_worker,
    recently_lost,
)
from assets_app.queries.most_counted import assets_with_most
from assets_app.queries.pages import broken_bundles, bundles_with_kept_assets
from assets_app.queries.ticks import next_ticks, recent_truncations, schedule_problems
from backfills_app.models import ENDED_STATES, Backfill
from backfills_app.queries.failed_backfills import failed_backfills
from backfills_app.queries.stalled import stalled_backfills
from backfills_app.views.progress import progress_with_pace
from slicewise_server.alerts.failing_channels import failing_channels
from slicewise_server.home.failure_rows import failure_rows
from slicewise_server.home.run_chart import SPANS, Span, run_chart
from slicewise_server.home.tiles import (
    LONG_WAIT,
    asset_numbers,
    problem_numbers,
    run_counts,
    tiles_of,
)
from slicewise_server.web.listing import unchanged, version_of

_MOST_ASSETS = 10
_MOST_GROUPS = 10
_MOST_BACKFILLS = 10
_MOST_FAILED_BACKFILLS = 5
_MOST_WORKERS = 10
_MOST_CHANNELS = 10
_MOST_NEXT_TICKS = 5
# Parts of the page that name problems.
_PROBLEMS = (
    "queues_without_worker", "lost_workers", "broken", "failed", "overdue", "waiting_long",
    "stalled", "failed_backfills", "failing", "overdue_ticks", "truncations", "failing_channels",
)  # fmt: skip


@login_required
@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    """Show the first page."""
    return render(request, "home/overview.html", _overview_context(request))


@login_required
@require_safe
def going_on(request: HttpRequest) -> HttpResponse:
    """Show the fragment of the overview that updates itself: all of the page but the frame."""
    context = _overview_context(request)
    if answer := unchanged(request, context["version"]):
        return answer
    return render(request, "home/overview.html#moving", context)


def _overview_context(request: HttpRequest) -> dict[str, Any]:
    span = SPANS.get(request.GET.get("span", ""), SPANS["24h"])
    # By the database's clock, which also stamps the heartbeats of workers and the ends of runs.
    now = database_now()
    context = _work_context(now) | _history_context(span, now)
    context["needs_attention"] = any(context[name] for name in _PROBLEMS)
    # The version covers all values of the page, so that polling sees every change.
    return context | {
        "version": version_of([_shown(context), _marks(context)]),
        # Present at each moment: no change that anybody needs to see.
        "long_query": urlencode(
            {"queue": Queue.SCHEDULED.value, "created_before": (now - LONG_WAIT).isoformat()}
        ),
        "span": span,
        "spans": SPANS.values(),
        "may_retry": may(request.user, Action.MATERIALIZE),
    }


def _work_context(now: datetime) -> dict[str, Any]:
    workers = gateway_statuses(list(Gateway.objects.all()), now)
    runs, problems, broken = run_counts(now), problem_numbers(now), broken_bundles()
    assets, lost_workers = asset_numbers(), recently_lost(workers, now)
    schedules = schedule_problems(now)
    overdue = [problem for problem in schedules if problem.overdue_at is not None]
    failing = [problem for problem in schedules if problem.failing_since is not None]
    # The row of a failing schedule says more than its overdue tick.
    ticks = [problem for problem in overdue if problem.failing_since is None]
    backfills = Backfill.objects.listed().exclude(state__in=ENDED_STATES).order_by("-id")
    stalled = stalled_backfills(_MOST_BACKFILLS + 1)
    channels = failing_channels(_MOST_CHANNELS + 1)
    return {
        "tiles": tiles_of(runs, problems, workers, broken, len(overdue), assets.paused),
        "workers": workers,
        "queues_without_worker": queues_without_worker(workers),
        "lost_workers": lost_workers[:_MOST_WORKERS],
        "more_lost_workers": max(len(lost_workers) - _MOST_WORKERS, 0),
        "runs": [(state, counted.number) for state, counted in runs.by_state.items()],
        "waiting_long": runs.waiting_long,
        "stalled": stalled[:_MOST_BACKFILLS],
        "more_stalled": len(stalled) > _MOST_BACKFILLS,
        "failing_channels": channels[:_MOST_CHANNELS],
        "more_failing_channels": len(channels) > _MOST_CHANNELS,
        "failing": failing[:_MOST_ASSETS],
        "more_failing": max(len(failing) - _MOST_ASSETS, 0),
        "running": progress_with_pace(list(backfills[:_MOST_BACKFILLS])),
        "broken": broken,
        "bundles_with_kept_assets": bundles_with_kept_assets(broken),
        "failed": assets_with_most(problems.failed, _MOST_ASSETS),
        "more_failed": max(len(problems.failed) - _MOST_ASSETS, 0),
        "overdue": assets_with_most(problems.overdue, _MOST_ASSETS),
        "more_overdue": max(len(problems.overdue) - _MOST_ASSETS, 0),
        "overdue_ticks": ticks[:_MOST_ASSETS],
        "more_overdue_ticks": max(len(ticks) - _MOST_ASSETS, 0),
        "truncations": recent_truncations(now),
        "next_ticks": next_ticks(now, _MOST_NEXT_TICKS),
        "late_ticks": overdue[:_MOST_NEXT_TICKS],
        "any_asset": assets.declared > 0,
    }


def _history_context(span: Span, now: datetime) -> dict[str, Any]:
    chart = run_chart(span, now)
    failures = unresolved_failures(chart.start)
    backfills = failed_backfills(chart.start, _MOST_FAILED_BACKFILLS)
    return {
        "chart": chart,
        "failures": failure_rows(with_streaks(failures[:_MOST_GROUPS])),
        "failed_run_count": sum(len(group.retryable_ids) for group in failures),
        "more_failures": max(len(failures) - _MOST_GROUPS, 0),
        "failed_backfills": backfills.latest,
        "more_failed_backfills": backfills.more_count,
    }


def _shown(value: object) -> object:
    """Return a value of the page in a form that changes with the shown text alone."""
    if isinstance(value, dict):
        return {name: _shown(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(member) for member in value]
    return getattr(value, "version", value)


def _marks(context: dict[str, Any]) -> list[object]:
    """Return the shown values of rows, which the text of a row does not have."""
    bundles = [(bundle.error, bundle.current_version_id) for bundle in context["broken"]]
    workers = [(worker.gateway.slots, worker.state, worker.used) for worker in context["workers"]]
    return [bundles, workers, [(row.pk, row.at) for row in context["truncations"]]]

"""The tab with the schedule on the page of an asset."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from accounts_app.policy import Action, may
from assets_app.models import Asset, RunState
from assets_app.queries.clock import database_now
from assets_app.queries.ticks import outcomes_of, ticks_of, truncations_of
from assets_app.scheduling.descriptions import ScheduleDescription, describe_schedule
from assets_app.scheduling.missed import missed_by
from assets_app.scheduling.progress import progress_of
from slicewise_server.web.listing import page_of_rows


def schedule_tab(request: HttpRequest, asset: Asset) -> dict[str, Any]:
    """Return the context of the tab: schedule, next tick, progress and recorded ticks."""
    schedule, now = describe_schedule(asset), database_now()
    tick_context = {} if schedule is None else _tick_context(request, schedule, now)
    return tick_context | {
        "schedule": schedule,
        "missed": missed_by(asset, now),
        "truncations": [] if schedule is None else truncations_of(asset),
        "may_pause": may(request.user, Action.PAUSE) and (schedule is not None or asset.paused),
    }


def _tick_context(
    request: HttpRequest, schedule: ScheduleDescription, now: datetime
) -> dict[str, Any]:
    progress = {} if schedule.row.by_time else {"progress": progress_of(schedule.asset, now)}
    if not schedule.has_times:
        return progress
    page = page_of_rows(request, ticks_of(schedule.row))
    outcomes = outcomes_of([tick for tick in page.items if tick.queued])
    return progress | {
        "page": page,
        "ticks": [_tick_line(tick, outcomes.get(tick.pk, {})) for tick in page.items],
    }


def _tick_line(tick: Any, outcomes: Mapping[str, int]) -> dict[str, Any]:
    """Return a recorded tick, and its runs by state."""
    return {
        "row": tick,
        "unqueued_counts": (tick.existing, tick.in_flight, tick.superseded),
        "outcomes": [(state, outcomes[state]) for state in RunState.values if state in outcomes],
        "runs": f"{reverse('assets:runs')}?tick={tick.pk}",
    }

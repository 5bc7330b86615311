"""Recorded ticks and truncations of schedules, for pages, API and commands."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Q, QuerySet

from assets_app.models import Asset, Run, Schedule, ScheduleTick, ScheduleTruncation

# The first page shows a truncation for so long.
_NEWS = timedelta(days=7)

# A tick that was to be handled so long ago is overdue.
OVERDUE_AFTER = timedelta(minutes=1)

# Almost none is without an asset that ticks: a pause takes away the next tick.
_SCHEDULES_TRIED = 50


@dataclass(frozen=True, slots=True)
class AssetTick:
    """The next tick of a schedule, with the first asset of the schedule by name."""

    asset_name: str
    at: datetime


def overdue_schedules(now: datetime) -> QuerySet[Schedule]:
    """Select the schedules with an overdue tick."""
    return Schedule.objects.filter(next_at__lt=now - OVERDUE_AFTER)


def is_tick_overdue(next_at: datetime | None, now: datetime) -> bool:
    """Return whether a next tick should have been handled long ago; False without a tick."""
    return next_at is not None and next_at < now - OVERDUE_AFTER


@dataclass(frozen=True, slots=True)
class ScheduleProblem:
    """A schedule with an overdue tick, or whose evaluation fails, with the first asset of the
    schedule by name.
    """

    asset_name: str
    # The tick that is overdue, if any.
    overdue_at: datetime | None
    failing_since: datetime | None
    # The error of the last evaluation; it may contain secrets.
    error: str


# Assets whose schedule fails. A schedule that is paused or no longer declared is not tried again,
# and so keeps its error.
FAILING = Q(
    producer__schedule__failing_since__isnull=False,
    producer__schedule__rule__isnull=False,
    paused=False,
)


def schedule_problems(now: datetime) -> list[ScheduleProblem]:
    """Return the problem of each schedule of declared assets that has one, the oldest first: one
    statement.
    """
    troubled = Q(producer__schedule__in=overdue_schedules(now)) | FAILING
    assets = Asset.objects.filter(troubled, active=True)
    rows = assets.order_by("producer__schedule", "name").distinct("producer__schedule")
    columns = ("next_at", "failing_since", "error")
    problems = [
        ScheduleProblem(name, next_at if is_tick_overdue(next_at, now) else None, since, error)
        for name, next_at, since, error in rows.values_list(
            "name", *(f"producer__schedule__{column}" for column in columns)
        )
    ]
    return sorted(problems, key=_oldest_first)


def _oldest_first(problem: ScheduleProblem) -> tuple[list[datetime], str]:
    moments = (problem.failing_since, problem.overdue_at)
    return [moment for moment in moments if moment is not None][:1], problem.asset_name


def next_ticks(now: datetime, most: int) -> list[AssetTick]:
    """Return the next ticks of schedules, the earliest first, without paused assets and without
    overdue ticks: two statements.
    """
    schedules = Schedule.objects.filter(next_at__gte=now - OVERDUE_AFTER).order_by("next_at", "pk")
    earliest = list(schedules.values_list("producer", "next_at")[: most + _SCHEDULES_TRIED])
    assets = Asset.objects.filter(
        active=True, paused=False, producer__in=[producer_id for producer_id, _ in earliest]
    )
    first_names = assets.order_by("producer", "name").distinct("producer")
    names = dict(first_names.values_list("producer", "name"))
    ticks = [
        AssetTick(names[producer_id], next_at)
        for producer_id, next_at in earliest
        if producer_id in names and next_at is not None
    ]
    return ticks[:most]


def ticks_of(schedule: Schedule) -> QuerySet[ScheduleTick]:
    """Select the ticks of a schedule, newest first."""
    return ScheduleTick.objects.filter(schedule=schedule).order_by("-at", "-id")


def outcomes_of(ticks: Sequence[ScheduleTick]) -> dict[int, dict[str, int]]:
    """Count the runs of the ticks by state, by tick id: one statement."""
    runs = Run.objects.filter(tick__in=ticks).order_by()
    counts: dict[int, dict[str, int]] = {}
    for tick_id, state, number in runs.values_list("tick", "state").annotate(Count("pk")):
        counts.setdefault(tick_id, {})[state] = number
    return counts


def truncations_of(asset: Asset, most: int = 20) -> list[ScheduleTruncation]:
    """Return the truncations of the schedule of an asset, the latest first."""
    return list(ScheduleTruncation.objects.filter(asset=asset)[:most])


def recent_truncations(now: datetime, most: int = 10) -> Sequence[ScheduleTruncation]:
    """Return the truncations of the last days, of all declared assets."""
    recent = ScheduleTruncation.objects.filter(at__gt=now - _NEWS, asset__active=True)
    return list(recent.select_related("asset__partition_definition")[:most])

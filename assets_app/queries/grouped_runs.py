"""Runs by request: a tick of a schedule, a person's request, a backfill."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, Max, Min, QuerySet

from assets_app.models import Run, RunGroup, RunState, ScheduleTick

MOST_RUNS = 2000
"""The number of latest runs that are grouped: a list of a million runs has no end in sight."""

_MOST_GROUPS = 100


@dataclass(slots=True)
class GroupedRuns:
    """The runs of one request, or of one tick, by state."""

    group: RunGroup
    tick: ScheduleTick | None
    newest_run: int = 0
    created_at: datetime | None = None
    asset_name: str = ""
    assets: set[int] = field(default_factory=set)
    states: Counter[str] = field(default_factory=Counter)

    @property
    def number(self) -> int:
        """The number of runs."""
        return self.states.total()

    @property
    def asset_count(self) -> int:
        """The number of assets of the runs."""
        return len(self.assets)

    @property
    def by_state(self) -> list[tuple[str, int]]:
        """The states with counts, in the order of the life of a run."""
        return [(state, self.states[state]) for state in RunState.values if self.states[state]]

    @property
    def query(self) -> str:
        """The query of the list of these runs."""
        tick = f"&tick={self.tick.pk}" if self.tick else ""
        return f"group={self.group.pk}{tick}"


class GroupsPage(NamedTuple):
    """The first groups of a list, the number of all groups, and whether older runs were left
    out.
    """

    first: Sequence[GroupedRuns]
    total: int
    has_older_runs: bool


def grouped_runs(rows: QuerySet[Run]) -> GroupsPage:
    """Return the latest of these runs by request and tick, newest first: four statements."""
    ids = list(rows.order_by("-id").values_list("pk", flat=True)[:MOST_RUNS])
    counted = list(
        Run.objects.filter(pk__in=ids)
        .order_by()
        .values("group", "tick", "state")
        .annotate(
            number=Count("pk"),
            newest=Max("pk"),
            created=Max("created_at"),
            name=Min("asset__name"),
            # An asset may have runs in several states: numbers of assets have no sum.
            assets=ArrayAgg("asset", distinct=True),
        )
    )
    groups = RunGroup.objects.in_bulk({row["group"] for row in counted})
    ticks = ScheduleTick.objects.in_bulk({row["tick"] for row in counted if row["tick"]})
    lines: dict[tuple[int, int | None], GroupedRuns] = {}
    for row in counted:
        line = lines.setdefault(
            (row["group"], row["tick"]),
            GroupedRuns(groups[row["group"]], ticks.get(row["tick"])),
        )
        line.states[row["state"]] += row["number"]
        line.newest_run = max(line.newest_run, row["newest"])
        line.created_at = max(line.created_at or row["created"], row["created"])
        line.asset_name = min(line.asset_name or row["name"], row["name"])
        line.assets.update(row["assets"])
    newest_first = sorted(
        lines.values(), key=lambda line: (line.created_at, line.newest_run), reverse=True
    )
    return GroupsPage(newest_first[:_MOST_GROUPS], len(newest_first), len(ids) == MOST_RUNS)

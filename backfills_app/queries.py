"""Shapes in which backfills are read."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.db import connection, models
from django.db.models import Count, Prefetch

from assets_app.models import ProducerVersion, SkipReason

if TYPE_CHECKING:
    from backfills_app.models import Backfill, BackfillAsset

# What differs between two reports of the same failure.
_VARIABLE = re.compile(r"[0-9][0-9a-fTZ:.+-]*")


class BackfillQuerySet(models.QuerySet["Backfill"]):
    """Backfills, with what lists and pages show of them."""

    def listed(self) -> "BackfillQuerySet":
        """Those not deleted, with what a line of a list names: two statements."""
        return self.recorded().filter(deleted=False)

    def recorded(self) -> "BackfillQuerySet":
        """All, also those that were deleted, with their assets and counts: two statements."""
        return (
            self.select_related("asset__partition_definition", "submitted_by", "group")
            .defer("asset__partition_definition__spec")
            .prefetch_related("assets__asset")
        )

    def told(self) -> "BackfillQuerySet":
        """The same with the versions of the code, for programs: three statements."""
        version = Prefetch(
            "assets__producer_version", ProducerVersion.objects.only("digest", "producer")
        )
        rows = self.recorded().select_related("code_version").prefetch_related(version)
        return rows.defer("asset__partition_definition__spec", "code_version__archive")


@dataclass(frozen=True, slots=True)
class Failure:
    """Failed runs that say the same, apart from numbers and dates.

    ``examples`` are the latest, each with its number and its selection.
    """

    error: str
    examples: tuple[tuple[int, str], ...]
    number: int


def failures_of(backfill: "Backfill", most_runs: int = 1000) -> list[Failure]:
    """The latest failed runs of a backfill, grouped by what they say: one statement."""
    failed = backfill.group.runs.filter(state="failed").order_by("-ended_at")
    groups: dict[str, list[tuple[int, str, str]]] = {}
    for pk, selection, error in failed.values_list("pk", "selection", "error")[:most_runs]:
        groups.setdefault(_VARIABLE.sub("#", error), []).append((pk, selection, error))
    found = [
        Failure(runs[0][2], tuple((pk, selection) for pk, selection, _ in runs[:5]), len(runs))
        for runs in groups.values()
    ]
    return sorted(found, key=lambda failure: -failure.number)


def partitions_page(
    part: "BackfillAsset", page: int, size: int
) -> list[tuple[str, str, str, int | None]]:
    """Key, state, reason and run of the partitions numbered so: a stretch of one index."""
    first = (page - 1) * size
    rows = part.partitions.filter(position__gte=first, position__lt=first + size)
    return list(rows.order_by("position").values_list("key", "state", "reason", "run"))


def page_of_interest(part: "BackfillAsset", size: int) -> int:
    """The page with the first partition that still waits, else the first one."""
    waiting = part.partitions.filter(state="waiting").order_by("position")
    first = waiting.values_list("position", flat=True).first()
    return 1 if first is None else first // size + 1


@dataclass(frozen=True, slots=True)
class Skipped:
    """How many partitions of an asset were skipped for one reason; ``others`` are the backfills
    that make or have made some of them instead, by number and name.
    """

    asset: str
    reason: str
    number: int
    others: tuple[tuple[int, str], ...] = ()

    @property
    def label(self) -> str:
        """The reason in words."""
        return str(SkipReason(self.reason).label)


_OTHERS = """
SELECT DISTINCT skipped.backfill_asset_id, other.id, other.name
FROM (
    SELECT backfill_asset_id, key FROM backfills_app_backfillpartition
    WHERE backfill_asset_id = ANY(%(parts)s) AND state = 'skipped' AND reason = 'in_flight'
    LIMIT %(most)s
) AS skipped
JOIN backfills_app_backfillasset AS piece ON piece.id = skipped.backfill_asset_id
JOIN assets_app_asset AS asset ON asset.id = piece.asset_id
JOIN partitions_app_partitiondefinition AS rule ON rule.id = asset.partition_definition_id
JOIN assets_app_assetpartition AS slice
    ON slice.asset_id = asset.id AND slice.identity = rule.identity AND slice.key = skipped.key
JOIN assets_app_run AS run ON run.id = coalesce(slice.held_by_id, slice.last_run_id)
JOIN backfills_app_backfill AS other ON other.group_id = run.group_id
WHERE other.id <> piece.backfill_id
ORDER BY 1, 2 LIMIT 20
"""
_MOST_LOOKED_UP = 200


def skipped_by_reason(parts: Iterable["BackfillAsset"]) -> list[Skipped]:
    """What was skipped and why, by asset: two statements.

    Who made what was in flight is looked up for some of them, not for a million.
    """
    named = {part.pk: part.asset.name for part in parts if part.skipped}
    if not named:
        return []
    from backfills_app.models import BackfillPartition

    rows = BackfillPartition.objects.filter(backfill_asset__in=named, state="skipped").order_by()
    counted = rows.values_list("backfill_asset", "reason").annotate(number=Count("pk"))
    found = sorted(counted, key=lambda row: (list(named).index(row[0]), -row[2]))
    others: dict[int, list[tuple[int, str]]] = {}
    if any(reason == SkipReason.IN_FLIGHT for _, reason, _ in found):
        with connection.cursor() as cursor:
            cursor.execute(_OTHERS, {"parts": list(named), "most": _MOST_LOOKED_UP})
            for part, other, name in cursor.fetchall():
                others.setdefault(part, []).append((other, name))
    return [
        Skipped(
            named[part],
            reason,
            number,
            tuple(others.get(part, ())) if reason == SkipReason.IN_FLIGHT else (),
        )
        for part, reason, number in found
    ]


_PACES = """
SELECT groups.id, recent.partitions, recent.first, recent.last,
    (SELECT count(*) FROM assets_app_run AS run WHERE run.group_id = groups.id
        -- said twice, for the index on what is unfinished
        AND run.state NOT IN ('succeeded', 'failed', 'canceled', 'skipped')
        AND run.state IN ('dispatched', 'running', 'publishing', 'canceling'))
FROM unnest(%(groups)s::bigint[]) AS groups(id), LATERAL (
    SELECT sum(run.partition_count) AS partitions, min(run.started_at) AS first,
        max(run.ended_at) AS last
    FROM (
        SELECT partition_count, started_at, ended_at FROM assets_app_run
        WHERE group_id = groups.id AND state IN ('succeeded', 'failed')
        ORDER BY id DESC LIMIT %(recent)s
    ) AS run
) AS recent
"""
_RECENT_RUNS = 100
_FEWEST_FOR_A_RATE = 3


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a backfill went of late: partitions that its latest runs made or failed to make, in
    how many seconds; and how many of its runs are at work.
    """

    partitions: int = 0
    seconds: float = 0.0
    running: int = 0

    @property
    def per_second(self) -> float | None:
        """Partitions a second; None where too few were made to tell."""
        return self.partitions / self.seconds if self.partitions >= _FEWEST_FOR_A_RATE else None


def paces_of(backfills: Iterable["Backfill"], now: datetime) -> dict[int, Pace]:
    """The pace of each backfill by its number: one statement for all of them.

    Of one that goes on, the time since its last run ended counts too, so that what stands still
    slows down.
    """
    by_group = {backfill.group_id: backfill for backfill in backfills}
    with connection.cursor() as cursor:
        cursor.execute(_PACES, {"groups": list(by_group), "recent": _RECENT_RUNS})
        rows = cursor.fetchall()
    paces = {}
    for group_id, partitions, first, last, running in rows:
        backfill = by_group[group_id]
        until = last if backfill.ended or not running else now
        seconds = max((until - first).total_seconds(), 0.1) if first and last else 0.0
        paces[backfill.pk] = Pace(partitions or 0, seconds, running)
    return paces

"""Shapes in which backfills are read."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import connection, models
from django.db.models import Count, Prefetch

from assets_app.models import ProducerVersion, Run, SkipReason

if TYPE_CHECKING:
    from backfills_app.models import Backfill, BackfillAsset, BackfillPartition

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


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition of a backfill, the state of its run if it has one, and why it was skipped, in
    words, if it was.
    """

    key: str
    state: str
    run_state: str | None
    because: str


@dataclass(frozen=True, slots=True)
class PartitionsPage:
    """A stretch of partitions in their order, and where those before and after it begin."""

    rows: tuple[PartitionRow, ...]
    previous: int | None
    following: int | None


def partitions_from(part: "BackfillAsset", first: int, size: int) -> PartitionsPage:
    """The next partitions from that position on; positions leave gaps. Two stretches of one index,
    however many partitions there are, and the runs of one.
    """
    named = part.partitions.values_list("position", "key", "state", "run_id", "reason")
    rows = list(named.filter(position__gte=first).order_by("position")[: size + 1])
    # Joined, all of a million are read first: the planner knows nothing of what was just written.
    runs = Run.objects.filter(pk__in={row[3] for row in rows if row[3] is not None})
    run_states = dict(runs.values_list("pk", "state"))
    earlier = part.partitions.filter(position__lt=first).order_by("-position")
    before = list(earlier.values_list("position", flat=True)[:size])
    reasons = dict(SkipReason.choices)
    return PartitionsPage(
        tuple(
            PartitionRow(key, state, run_states.get(run_id), reasons.get(reason, ""))
            for _, key, state, run_id, reason in rows[:size]
        ),
        before[-1] if before else None,
        rows[size][0] if len(rows) > size else None,
    )


def interesting_position(part: "BackfillAsset", order: str) -> int:
    """Where the next partition waits, by the index that admission goes by; else the beginning."""
    waiting = part.partitions.filter(state="waiting", ready=True)
    newest_first = order == "newest"
    order_by = ("-rank", "-position") if newest_first else ("rank", "position")
    first = waiting.order_by(*order_by).values_list("position", flat=True).first()
    return 0 if first is None else first


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

    What is there already may be a million, which is the rest of the count that is kept and is not
    counted again. Who made what was in flight is looked up for some of them.
    """
    skipped = {part.pk: part for part in parts if part.skipped}
    if not skipped:
        return []
    named = {pk: part.asset.name for pk, part in skipped.items()}
    found = _counted(skipped)
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


def _counted(parts: Mapping[int, "BackfillAsset"]) -> list[tuple[int, str, int]]:
    """Asset, reason and number, the most first for each asset."""
    rare = [reason for reason in SkipReason if reason != SkipReason.EXISTS]
    counted = _skipped_for(parts, rare).values_list("backfill_asset", "reason")
    found = list(counted.annotate(number=Count("pk")).order_by())
    for pk, part in parts.items():
        rest = part.skipped - sum(number for of, _, number in found if of == pk)
        if rest > 0:
            found.append((pk, SkipReason.EXISTS.value, rest))
    places = list(parts)
    return sorted(found, key=lambda row: (places.index(row[0]), -row[2], row[1]))


def lacks_upstream(parts: Iterable["BackfillAsset"]) -> bool:
    """Whether some were skipped for want of something upstream, or of the partition before, which
    may be there by now.
    """
    skipped = [part.pk for part in parts if part.skipped]
    wanting = [SkipReason.UPSTREAM_FAILED, SkipReason.UPSTREAM_MISSING, SkipReason.WAIT_TIMEOUT]
    return bool(skipped) and _skipped_for(skipped, wanting).exists()


def _skipped_for(
    parts: Iterable[int], reasons: Iterable[str]
) -> models.QuerySet["BackfillPartition"]:
    from backfills_app.models import BackfillPartition

    return BackfillPartition.objects.filter(
        backfill_asset__in=list(parts), state="skipped", reason__in=list(reasons)
    )


# The runs of a group are bounded from both sides rather than equal to it: else the planner takes
# the latest of all runs to be near, and looks through those of every other backfill.
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
        WHERE group_id >= groups.id AND group_id <= groups.id AND state IN ('succeeded', 'failed')
        ORDER BY group_id DESC, id DESC LIMIT %(recent)s
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


MOST_RUNS_DRAWN = 10_000
"""Of more runs the latest are drawn: a million must not keep a page waiting."""

_ENDED_BY_TIME = """
WITH latest AS MATERIALIZED (
    SELECT state, started_at, ended_at FROM assets_app_run
    WHERE group_id >= %(group)s AND group_id <= %(group)s
    ORDER BY group_id DESC, id DESC LIMIT %(most)s
), span AS (
    SELECT min(coalesce(started_at, ended_at)) AS first, count(*) AS drawn,
        CASE WHEN bool_or(ended_at IS NULL) THEN %(now)s ELSE max(ended_at) END AS last
    FROM latest
)
SELECT span.first, span.last, span.drawn, latest.state, count(*),
    least(greatest(floor(
        %(pieces)s * extract(epoch FROM latest.ended_at - span.first)
        / greatest(extract(epoch FROM span.last - span.first), 0.001)
    ), 0), %(pieces)s - 1)::int AS piece
FROM latest, span WHERE latest.ended_at IS NOT NULL
GROUP BY 1, 2, 3, 4, 6 ORDER BY 6
"""


@dataclass(frozen=True, slots=True)
class EndedRuns:
    """How many runs ended, by piece of time and state; ``drawn`` is of how many runs that tells."""

    first: datetime
    last: datetime
    drawn: int
    pieces: Mapping[int, Mapping[str, int]]


def ended_by_time(backfill: "Backfill", pieces: int, now: datetime) -> EndedRuns | None:
    """When the runs of a backfill ended, in so many pieces of the time that they took: one
    statement, and one that reads no more than the latest MOST_RUNS_DRAWN runs. None before the
    first has ended.
    """
    asked: dict[str, Any] = {
        "group": backfill.group_id, "pieces": pieces, "now": now, "most": MOST_RUNS_DRAWN,
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(_ENDED_BY_TIME, asked)
        rows = cursor.fetchall()
    if not rows:
        return None
    by_piece: dict[int, dict[str, int]] = {}
    for _, _, _, state, number, piece in rows:
        by_piece.setdefault(piece, {})[state] = number
    first, last, drawn = rows[0][:3]
    return EndedRuns(first, last, drawn, by_piece)

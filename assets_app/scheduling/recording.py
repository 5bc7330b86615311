"""What came of ticks, for the asset's page: made, or why not; and for how long that is kept."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection

from assets_app.execution.claims import reserve_ids
from assets_app.models import Asset, LeftOut, Schedule, ScheduleTick, TickReason
from slicewise.partition_set import PartitionSet
from slicewise.rows import PartitionRow

_IDLE = (TickReason.NOTHING_ENDED, TickReason.UPSTREAM)
_FORGOTTEN_AT_ONCE = 5_000
_MOST_STEPS = 20

_KEEP = """
INSERT INTO assets_app_scheduletick
    (id, schedule_id, at, last_at, count, reason, queued, existing, in_flight, passed_over)
SELECT coalesce(id, nextval(pg_get_serial_sequence('assets_app_scheduletick', 'id'))),
       schedule_id, at, at, count, reason, queued, existing, in_flight, passed_over
FROM unnest(
    %s::bigint[], %s::bigint[], %s::timestamptz[], %s::int[], %s::text[], %s::int[], %s::int[],
    %s::int[], %s::int[]
) AS tick(id, schedule_id, at, count, reason, queued, existing, in_flight, passed_over)
"""
_JOIN = """
UPDATE assets_app_scheduletick AS tick
SET last_at = joined.at, count = tick.count + joined.count
FROM unnest(%s::bigint[], %s::timestamptz[], %s::int[]) AS joined(id, at, count)
WHERE tick.id = joined.id
"""
# One row of each schedule is read, however many there are of it.
_LAST_ROWS = """
SELECT idle.schedule_id, last.id
FROM unnest(%s::bigint[]) AS idle(schedule_id)
CROSS JOIN LATERAL (
    SELECT tick.id, tick.reason FROM assets_app_scheduletick AS tick
    WHERE tick.schedule_id = idle.schedule_id
    ORDER BY tick.schedule_id, tick.at DESC, tick.id DESC LIMIT 1
) AS last
WHERE last.reason = %s
"""


@dataclass(slots=True, kw_only=True)
class TickResult:
    """One tick of one schedule, as it is recorded."""

    schedule: Schedule
    at: datetime
    # Of the row that it is to be, where runs name it before it is made.
    pk: int | None = None
    # Ticks that it stands for: those the server was not there for are among them.
    count: int = 1
    wanted: Sequence[PartitionRow] = field(default_factory=list)
    existing: int = 0
    in_flight: int = 0
    passed_over: int = 0
    # Partitions for which the rest of the schedule does not hold.
    waiting: int = 0

    @property
    def queued(self) -> int:
        """How many partitions were queued."""
        return len(self.wanted) - self.in_flight

    @property
    def reason(self) -> str:
        """Why nothing was queued; empty where something was."""
        if self.queued:
            return ""
        if self.in_flight:
            return TickReason.IN_FLIGHT
        if self.waiting:
            return TickReason.UPSTREAM
        return TickReason.EXISTS if self.existing else TickReason.NOTHING_ENDED

    def values(self) -> tuple[object, ...]:
        """Return the tick as the columns of a row of its own."""
        found = self.queued, self.existing, self.in_flight, self.passed_over
        return (self.pk, self.schedule.pk, self.at, self.count, str(self.reason), *found)


def number_ticks(results: Sequence[TickResult]) -> None:
    """Give each the number that its row will have, for the runs that it asks for."""
    for result, pk in zip(results, reserve_ids(ScheduleTick, len(results)), strict=True):
        result.pk = pk


def record_ticks(results: Sequence[TickResult]) -> None:
    """Keep each tick; one for which nothing had ended, or nothing was there upstream, joins the row
    before, if that says the same.

    Three statements, however many there are; bulk_create and bulk_update take seconds of thousands.
    """
    idle = [result for result in results if result.reason in _IDLE]
    before = _rows_to_join(idle)
    joined: list[tuple[TickResult, int]] = []
    fresh: list[TickResult] = []
    for result in results:
        row_id = before.get(result.schedule.pk)
        if result.reason in _IDLE and row_id is not None:
            joined.append((result, row_id))
        else:
            fresh.append(result)
    _join(joined)
    _keep(fresh)


def _join(joined: Sequence[tuple[TickResult, int]]) -> None:
    if joined:
        with connection.cursor() as cursor:
            rows = [(row_id, result.at, result.count) for result, row_id in joined]
            cursor.execute(_JOIN, [list(column) for column in zip(*rows, strict=True)])


def _keep(fresh: Sequence[TickResult]) -> None:
    if fresh:
        with connection.cursor() as cursor:
            columns = zip(*(result.values() for result in fresh), strict=True)
            cursor.execute(_KEEP, [list(column) for column in columns])


def _rows_to_join(idle: Sequence[TickResult]) -> dict[int, int]:
    """The last tick of each schedule, where that queued nothing for the same reason."""
    found: dict[int, int] = {}
    for reason in _IDLE:
        schedule_ids = [result.schedule.pk for result in idle if result.reason == reason]
        if schedule_ids:
            with connection.cursor() as cursor:
                cursor.execute(_LAST_ROWS, [schedule_ids, reason])
                found |= dict(cursor.fetchall())
    return found


def record_left_out(asset: Asset, left_out: PartitionSet, *, queued: int, now: datetime) -> None:
    """Keep what one upstream write has made due and not queued, or one tick has not made again; the
    same again is one row.
    """
    hull = left_out.hull
    LeftOut.objects.update_or_create(
        asset_id=asset.pk,
        first=left_out[0].text,
        last=left_out[-1].text,
        count=len(left_out),
        defaults={
            "at": now,
            "queued": queued,
            "start": "" if hull is None else left_out[0].time.text,
            "end": "" if hull is None else left_out[-1].time.text,
        },
    )


def forget_ticks(now: datetime) -> int:
    """Delete rows of ticks, and of what was left out, that are older than the settings want; how
    many ticks.

    In steps, each a transaction of its own, and not more of them than one call has time for: the
    next one goes on.
    """
    since = now - timedelta(days=settings.SCHEDULE_TICK_DAYS)
    LeftOut.objects.filter(at__lt=since).delete()
    too_old = ScheduleTick.objects.filter(last_at__lt=since)
    total = 0
    for _ in range(_MOST_STEPS):
        step = too_old.order_by("id").values("id")[:_FORGOTTEN_AT_ONCE]
        deleted, _by_model = ScheduleTick.objects.filter(pk__in=step).delete()
        total += deleted
        if deleted < _FORGOTTEN_AT_ONCE:
            break
    return total

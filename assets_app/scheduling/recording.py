"""Records of ticks for the page of the asset, with the reason where no partition was queued."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection

from assets_app.models import Asset, Schedule, ScheduleTick, ScheduleTruncation, TickReason
from assets_app.signals import schedule_truncated
from slicewise.partitions import PartitionRow, PartitionSet
from slicewise_server.web.deletion import delete_oldest
from slicewise_server.web.row_ids import reserve_ids

_IDLE = (TickReason.NOTHING_ENDED, TickReason.UPSTREAM)
_FORGOTTEN_AT_ONCE = 5_000
_MOST_STEPS = 20

_INSERT = """
INSERT INTO assets_app_scheduletick
    (id, schedule_id, at, last_at, count, reason, queued, existing, in_flight, superseded)
SELECT coalesce(id, nextval(pg_get_serial_sequence('assets_app_scheduletick', 'id'))),
       schedule_id, at, at, count, reason, queued, existing, in_flight, superseded
FROM unnest(
    %s::bigint[], %s::bigint[], %s::timestamptz[], %s::int[], %s::text[], %s::int[], %s::int[],
    %s::int[], %s::int[]
) AS tick(id, schedule_id, at, count, reason, queued, existing, in_flight, superseded)
"""
_JOIN = """
UPDATE assets_app_scheduletick AS tick
SET last_at = joined.at, count = tick.count + joined.count
FROM unnest(%s::bigint[], %s::timestamptz[], %s::int[]) AS joined(id, at, count)
WHERE tick.id = joined.id
"""
# One row of each schedule is read, however many rows the schedule has.
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
    """The result of one tick of one schedule, as recorded."""

    schedule: Schedule
    at: datetime
    # Id of the row to be inserted, where runs name the row before it exists.
    pk: int | None = None
    # Number of ticks that the row stands for, among them ticks while the server was down.
    count: int = 1
    to_queue: Sequence[PartitionRow] = field(default_factory=list)
    existing: int = 0
    in_flight: int = 0
    superseded: int = 0
    # Partitions for which the rest of the schedule is not met.
    waiting: int = 0

    @property
    def queued(self) -> int:
        """How many partitions were queued."""
        return len(self.to_queue) - self.in_flight

    @property
    def reason(self) -> str:
        """Why no partition was queued; empty where one was queued, and where all were superseded:
        the next tick, at once, has the latest.
        """
        if self.queued:
            return ""
        if self.in_flight:
            return TickReason.IN_FLIGHT
        if self.waiting:
            return TickReason.UPSTREAM
        if self.existing:
            return TickReason.EXISTS
        return "" if self.superseded else TickReason.NOTHING_ENDED

    def values(self) -> tuple[object, ...]:
        """Return the tick as the columns of a new row."""
        counts = self.queued, self.existing, self.in_flight, self.superseded
        return (self.pk, self.schedule.pk, self.at, self.count, str(self.reason), *counts)


def number_ticks(results: Sequence[TickResult]) -> None:
    """Reserve for each tick the id of its row, for the runs that the tick queues."""
    for result, pk in zip(results, reserve_ids(ScheduleTick, len(results)), strict=True):
        result.pk = pk


def record_ticks(results: Sequence[TickResult]) -> None:
    """Record each tick. A tick that queued nothing, since no window had ended or the upstream
    partitions were not ready, joins the row before if that row has the same reason.

    Three statements for any number of ticks; bulk_create and bulk_update take seconds for
    thousands.
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
    _insert(fresh)


def _join(joined: Sequence[tuple[TickResult, int]]) -> None:
    if joined:
        with connection.cursor() as cursor:
            rows = [(row_id, result.at, result.count) for result, row_id in joined]
            cursor.execute(_JOIN, [list(column) for column in zip(*rows, strict=True)])


def _insert(fresh: Sequence[TickResult]) -> None:
    if fresh:
        with connection.cursor() as cursor:
            columns = zip(*(result.values() for result in fresh), strict=True)
            cursor.execute(_INSERT, [list(column) for column in columns])


def _rows_to_join(idle: Sequence[TickResult]) -> dict[int, int]:
    """Return the last row of each schedule, where that row has the same reason."""
    row_ids: dict[int, int] = {}
    for reason in _IDLE:
        schedule_ids = [result.schedule.pk for result in idle if result.reason == reason]
        if schedule_ids:
            with connection.cursor() as cursor:
                cursor.execute(_LAST_ROWS, [schedule_ids, reason])
                row_ids |= dict(cursor.fetchall())
    return row_ids


def record_truncation(asset: Asset, unqueued: PartitionSet, *, queued: int, now: datetime) -> None:
    """Record partitions that one upstream write made due and did not queue, or that one tick did
    not refresh. The same partitions again update the same row, and are announced once.
    """
    hull = unqueued.hull
    row, created = ScheduleTruncation.objects.update_or_create(
        asset_id=asset.pk,
        first=unqueued[0].text,
        last=unqueued[-1].text,
        count=len(unqueued),
        defaults={
            "at": now,
            "queued": queued,
            "start": "" if hull is None else unqueued[0].time.text,
            "end": "" if hull is None else unqueued[-1].time.text,
        },
    )
    if created:
        schedule_truncated.send(sender=None, truncation=row)


def forget_ticks(now: datetime) -> int:
    """Delete ticks and truncations that are older than the settings keep; return the number of
    deleted ticks.

    Deletion goes in steps, each in a transaction of its own, and in no more steps than one call has
    time for: the next call goes on.
    """
    since = now - timedelta(days=settings.SCHEDULE_TICK_DAYS)
    ScheduleTruncation.objects.filter(at__lt=since).delete()
    too_old = ScheduleTick.objects.filter(last_at__lt=since)
    total = 0
    for _ in range(_MOST_STEPS):
        deleted = delete_oldest(too_old, _FORGOTTEN_AT_ONCE)
        total += deleted
        if deleted < _FORGOTTEN_AT_ONCE:
            break
    return total

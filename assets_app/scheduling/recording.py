"""What came of ticks, for the asset's page: made, or why not; and for how long that is kept."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings

from assets_app.models import Schedule, ScheduleTick, TickReason
from slicewise.rows import PartitionRow

_FORGOTTEN_AT_ONCE = 5_000
_MOST_STEPS = 20


@dataclass(slots=True, kw_only=True)
class TickResult:
    """One tick of one schedule, as it is recorded."""

    schedule: Schedule
    at: datetime
    # Ticks that it stands for: those the server was not there for are among them.
    count: int = 1
    wanted: Sequence[PartitionRow] = field(default_factory=list)
    existing: int = 0
    in_flight: int = 0
    passed_over: int = 0

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
        return TickReason.EXISTS if self.existing else TickReason.NOTHING_ENDED

    def row(self) -> ScheduleTick:
        """The tick as a row of its own."""
        return ScheduleTick(
            schedule=self.schedule,
            at=self.at,
            last_at=self.at,
            count=self.count,
            reason=self.reason,
            queued=self.queued,
            existing=self.existing,
            in_flight=self.in_flight,
            passed_over=self.passed_over,
        )


def record_ticks(results: Sequence[TickResult]) -> None:
    """Keep each tick; one for which nothing had ended joins the row before, if that says the same.

    Three statements, however many there are.
    """
    idle = [result for result in results if result.reason == TickReason.NOTHING_ENDED]
    before = _rows_to_join([result.schedule.pk for result in idle])
    joined: list[ScheduleTick] = []
    fresh: list[ScheduleTick] = []
    for result in results:
        row = before.get(result.schedule.pk)
        if result.reason == TickReason.NOTHING_ENDED and row is not None:
            row.last_at, row.count = result.at, row.count + result.count
            joined.append(row)
        else:
            fresh.append(result.row())
    ScheduleTick.objects.bulk_update(joined, ["last_at", "count"], batch_size=2_000)
    ScheduleTick.objects.bulk_create(fresh, batch_size=5_000)


def _rows_to_join(schedule_ids: Sequence[int]) -> dict[int, ScheduleTick]:
    """The last tick of each schedule, where nothing had ended for that either."""
    last = (
        ScheduleTick.objects.filter(schedule__in=schedule_ids)
        .order_by("schedule_id", "-at", "-id")
        .distinct("schedule_id")
    )
    return {row.schedule_id: row for row in last if row.reason == TickReason.NOTHING_ENDED}


def forget_ticks(now: datetime) -> int:
    """Delete rows of ticks that are older than the settings want; how many.

    In steps, each a transaction of its own, and not more of them than one call has time for: the
    next one goes on.
    """
    too_old = ScheduleTick.objects.filter(
        last_at__lt=now - timedelta(days=settings.SCHEDULE_TICK_DAYS)
    )
    total = 0
    for _ in range(_MOST_STEPS):
        step = too_old.order_by("id").values("id")[:_FORGOTTEN_AT_ONCE]
        deleted, _by_model = ScheduleTick.objects.filter(pk__in=step).delete()
        total += deleted
        if deleted < _FORGOTTEN_AT_ONCE:
            break
    return total

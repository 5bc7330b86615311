"""Ticks of schedules by time: every partition that ended since the last tick is due (AIP-76).

Schedules that join times and assets tick in `joined_ticks`.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.conf import settings
from django.db import Error, connection, transaction

from assets_app.execution.queue.claims import PlannedRun, claim_all
from assets_app.execution.queue.messages import nudge_dispatch
from assets_app.models import Asset, Schedule, Target, Trigger
from assets_app.scheduling.ended import Ended, EndedPartitions, Terms, rule_text
from assets_app.scheduling.failures import forget_failures, record_failures
from assets_app.scheduling.isolation import in_halves
from assets_app.scheduling.joined_ticks import handle_joined_ticks
from assets_app.scheduling.partition_marks import (
    LOOK_AGAIN,
    PartitionFacts,
    locked_assets,
    mark_due_again,
    mark_skipped,
    partition_facts,
)
from assets_app.scheduling.planning import planned_runs, terms_of, version_in_force
from assets_app.scheduling.recording import (
    TickResult,
    number_ticks,
    record_ticks,
    record_truncation,
)
from assets_app.scheduling.tick_targets import targets_of
from slicewise.partitions import PartitionRow
from slicewise_server.web.advisory_locks import AdvisoryLock, try_lock_until_commit

_BATCH_SIZE = 2_000
# For thousands of rows, Django's own bulk_update takes several seconds.
_ADVANCE = """
UPDATE assets_app_schedule AS schedule SET handled_until = handled.until, next_at = handled.next_at
FROM unnest(%s::bigint[], %s::timestamptz[], %s::timestamptz[]) AS handled(id, until, next_at)
WHERE schedule.id = handled.id
"""
# The columns of schedules that a tick reads, and no more: there may be ten thousand schedules.
_READ = (
    "rule",
    "handled_until",
    "failures",
    "producer__name",
    "producer__current_version__definition",
    "producer__current_version__producer_id",
    "group__queue",
)

log = logging.getLogger(__name__)

Errors = dict[int, Exception]
"""Errors of schedules that could not be handled, by schedule id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tick:
    """One tick of one schedule, and the partitions of one asset that the tick is about.

    ``other_targets`` are the other assets that the runs of the asset materialize.
    """

    schedule: Schedule
    target: Target
    other_targets: Sequence[Target]
    ended: Ended

    @property
    def partition_count(self) -> int:
        """How many partitions are examined or recorded."""
        ended = self.ended
        superseded_count = len(ended.superseded) * (1 + len(self.other_targets))
        return len(ended.due) + len(ended.refreshed) + superseded_count

    @property
    def asset_ids(self) -> set[int]:
        """Ids of the assets that the function makes."""
        return {target.asset.pk for target in (self.target, *self.other_targets)}

    @property
    def superseded(self) -> list[tuple[Target, PartitionRow]]:
        """Partitions that the tick skips, of all assets that the function makes."""
        targets = (self.target, *self.other_targets)
        return [(target, row) for target in targets for row in self.ended.superseded]


def handle_ticks(now: datetime) -> int:
    """Queue the partitions that ticks up to now make due; return the number of schedules that
    ticked.

    Without a tick the call costs one look at an index.
    """
    kinds = Schedule.objects.filter(next_at__lte=now).values_list("by_time", flat=True).distinct()
    due = set(kinds)
    ticked = _handle_times(now) if True in due else 0
    return ticked + (handle_joined_ticks(now) if False in due else 0)


def _handle_times(now: datetime) -> int:
    """Handle the ticks of schedules by time; return the number of schedules that ticked.

    One worker handles ticks at a time: other workers return at once. Schedules that another
    transaction is changing are left to the next beat.
    """
    with transaction.atomic():
        if not try_lock_until_commit(AdvisoryLock.TICK):
            return 0
        schedules = list(
            Schedule.objects.select_for_update(of=("self",), no_key=True, skip_locked=True)
            .select_related("producer__current_version", "group")
            .only(*_READ)
            .filter(next_at__lte=now, by_time=True)
            .order_by("next_at", "id")[:_BATCH_SIZE]
        )
        ticks, errors = _ticks(schedules, now)
        handled: set[int] = set()
        failed = in_halves(ticks, partial(_queue, now=now, handled=handled))
        errors |= {tick.schedule.pk: error for tick, error in failed}
        # A failed schedule keeps no other schedule from its ticks, and partitions that ended
        # meanwhile are not lost.
        record_failures(errors, now, is_tick=True)
        forget_failures(tick.schedule for tick in ticks if tick.schedule.pk in handled)
        nudge_dispatch()
        return len(handled)


def _ticks(schedules: Sequence[Schedule], now: datetime) -> tuple[list[_Tick], Errors]:
    """Return (ticks, errors): the ticks of the first schedules, up to the number of partitions that
    one transaction has room for, in the order of the partitions that the ticks claim; and the
    errors of schedules that could not be read.

    The other schedules stay due and tick in the next transaction.
    """
    targets, ended, errors = targets_of(schedules), EndedPartitions(now), Errors()
    _stop_paused(target.asset for target, *_ in targets.values() if target.asset.paused)
    ticks: list[_Tick] = []
    room = settings.MAX_PARTITIONS_PER_TRANSACTION
    for schedule in schedules:
        own_targets = targets.get(schedule.producer_id, ())
        if own_targets and own_targets[0].asset.paused:
            continue
        try:
            tick = _tick(schedule, own_targets, ended)
        except Error:
            raise
        except Exception as error:
            # For example a kind of time from a package that is no longer installed here.
            log.exception(
                "a schedule could not be read", extra={"producer": schedule.producer.name}
            )
            errors[schedule.pk] = error
            continue
        if tick is None:
            continue
        room -= tick.partition_count
        if room < 0 and ticks:
            break
        ticks.append(tick)
    return sorted(ticks, key=lambda tick: tick.target.asset.pk), errors


def _tick(schedule: Schedule, targets: Sequence[Target], ended: EndedPartitions) -> _Tick | None:
    if not targets:
        raise LookupError("no asset is declared that it makes")
    target, *other_targets = targets
    tick_input = _tick_input(schedule, target, outlet_count=len(targets))
    partitions = ended.of(tick_input, target.definition)
    if partitions is None:
        return None
    return _Tick(schedule=schedule, target=target, other_targets=other_targets, ended=partitions)


def _stop_paused(paused_assets: Iterable[Asset]) -> None:
    """Stop the ticks of paused assets: an asset can be paused before its schedule exists."""
    if producers := [asset.producer_id for asset in paused_assets]:
        Schedule.objects.filter(producer__in=producers).update(next_at=None)


def _tick_input(schedule: Schedule, target: Target, *, outlet_count: int) -> Terms:
    spec = version_in_force(schedule).spec
    row = None if target.is_discovering else target.asset.partition_definition
    return Terms(
        rule=rule_text(schedule.rule or {}),
        since=schedule.handled_until,
        definition=() if row is None else (row.fingerprint, str(row.revision)),
        pending=spec.pending,
        refresh=spec.refresh,
        rows_per_window=outlet_count if spec.pending == "latest" else 1,
    )


def _queue(ticks: Sequence[_Tick], *, now: datetime, handled: set[int]) -> None:
    """Queue the partitions of the ticks, and add the schedules that ticked to ``handled``."""
    if not (ticks := _unlocked(ticks, now)):
        return
    facts = partition_facts(
        (tick.target, [row.key for row in (*tick.ended.due, *tick.ended.refreshed)])
        for tick in ticks
    )
    results = [_result(tick, facts) for tick in ticks]
    if any(result.to_queue for result in results):
        number_ticks(results)
    planned: list[PlannedRun] = []
    for tick, result in zip(ticks, results, strict=True):
        run_terms = terms_of(tick.schedule, tick.target, Trigger.SCHEDULE, tick_id=result.pk)
        planned += planned_runs(run_terms, result.to_queue)
    _, held_partitions = claim_all(planned)
    mark_due_again(held_partitions)
    mark_skipped([pair for tick in ticks for pair in tick.superseded])
    blocked = Counter(partition.terms.asset.pk for partition in held_partitions)
    for tick, result in zip(ticks, results, strict=True):
        result.in_flight = blocked[tick.target.asset.pk]
    record_ticks(results)
    for tick in ticks:
        if tick.ended.unqueued is not None:
            queued = len(tick.ended.refreshed)
            record_truncation(tick.target.asset, tick.ended.unqueued, queued=queued, now=now)
    _advance(ticks)
    handled.update(tick.schedule.pk for tick in ticks)


def _unlocked(ticks: Sequence[_Tick], now: datetime) -> list[_Tick]:
    """Return the ticks without locked partitions. A tick with a partition that another transaction
    has locked is put off, and its partitions stay due.
    """
    locked = locked_assets(
        (target, tick.ended.keys if target == tick.target else tick.ended.superseded_keys)
        for tick in ticks
        for target in (tick.target, *tick.other_targets)
    )
    late = [tick.schedule.pk for tick in ticks if locked & tick.asset_ids]
    if late:
        Schedule.objects.filter(pk__in=late).update(next_at=now + LOOK_AGAIN)
    return [tick for tick in ticks if not locked & tick.asset_ids]


def _result(tick: _Tick, facts: PartitionFacts) -> TickResult:
    """Return the result of a tick: due partitions without data, and partitions to be refreshed."""
    ended = tick.ended
    missing_rows = [row for row in ended.due if not _is_up_to_date(tick, row, facts)]
    refreshed_rows = [row for row in ended.refreshed if facts.version(tick.target.asset, row.key)]
    return TickResult(
        schedule=tick.schedule,
        at=ended.at,
        count=ended.count,
        to_queue=[*refreshed_rows, *missing_rows],
        existing=len(ended.due) - len(missing_rows),
        superseded=len(ended.superseded),
    )


def _is_up_to_date(tick: _Tick, row: PartitionRow, facts: PartitionFacts) -> bool:
    """Return whether the tick spares a partition.

    A window is materialized once. For a partition without a window each tick is a new occasion:
    only a run that no tick requested, begun since the tick before, spares this tick. A run that
    discovers partitions is never spared: the known keys say nothing of new ones.
    """
    if row.end is not None:
        return facts.version(tick.target.asset, row.key) > 0
    if tick.target.is_discovering:
        return False
    began_at = facts.made_otherwise_at(tick.target.asset, row.key)
    return began_at is not None and began_at > tick.schedule.handled_until


def _advance(ticks: Sequence[_Tick]) -> None:
    """Store how far the schedule of each tick is handled, and its next tick."""
    with connection.cursor() as cursor:
        ended = [tick.ended for tick in ticks]
        columns = (
            [ended_partitions.until for ended_partitions in ended],
            [ended_partitions.next_at for ended_partitions in ended],
        )
        cursor.execute(_ADVANCE, [[tick.schedule.pk for tick in ticks], *columns])

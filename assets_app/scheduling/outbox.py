"""Schedules by assets: a recorded run or a reported write makes downstream partitions due (AIP-75,
AIP-76).
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial, reduce
from operator import attrgetter, or_

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q

import slicewise
from assets_app.execution.queue.messages import nudge_dispatch
from assets_app.models import (
    DISCOVERY,
    Asset,
    AssetDependency,
    Outbox,
    Run,
    Schedule,
    Target,
    Trigger,
    WriteReport,
)
from assets_app.scheduling.affected import NewPartition, Write, affected
from assets_app.scheduling.failures import (
    FIRST_PAUSE,
    forget_failures,
    pause_after,
    record_failures,
)
from assets_app.scheduling.isolation import in_halves, isolated
from assets_app.scheduling.late_inputs import examine_waiting_for
from assets_app.scheduling.partition_marks import LOOK_AGAIN, PartitionsLocked
from assets_app.scheduling.queueing import (
    TouchedPartitions,
    examined_edges,
    queue_due,
    scheduled_target,
)
from assets_app.scheduling.recording import record_truncation
from assets_app.scheduling.writes_before_pauses import keep_for_missed

_RUNS_AT_ONCE = 200
# The part of these entries that failed before.
_RETRIED_AT_ONCE = 100

# Materializations of runs and write reports, with the time of each and, for a partition without a
# window, the time of the materialization before. An earlier materialization by a backfill is no
# tick, since materializations of backfills are never evaluated. The discovery partition of a run
# makes no partition due; the keys that the run has discovered do.
_MADE = """
SELECT materialization.run_id, materialization.report_id, partition.asset_id, partition.identity,
    partition.key,
    materialization.created_at,
       before.created_at
FROM assets_app_materialization AS materialization
JOIN assets_app_assetpartition AS partition ON partition.id = materialization.partition_id
LEFT JOIN LATERAL (
    SELECT earlier.created_at
    FROM assets_app_materialization AS earlier
    LEFT JOIN assets_app_run AS run ON run.id = earlier.run_id
    WHERE earlier.partition_id = materialization.partition_id
      AND earlier.version < materialization.version
      AND partition.window_start IS NULL AND run.trigger IS DISTINCT FROM %s
    ORDER BY earlier.version DESC LIMIT 1
) AS before ON true
WHERE (materialization.run_id = ANY(%s) OR materialization.report_id = ANY(%s))
  AND partition.identity <> %s
ORDER BY materialization.id
"""

# Schedules that have outbox entries of their own and do not pause after a failure. Each schedule is
# found by one step along the index, however many entries the schedule has.
_READY = """
WITH RECURSIVE kept AS (
    SELECT min(schedule_id) AS id FROM assets_app_outbox
    UNION ALL
    SELECT (SELECT min(schedule_id) FROM assets_app_outbox WHERE schedule_id > kept.id)
    FROM kept WHERE kept.id IS NOT NULL
)
SELECT schedule.id FROM kept JOIN assets_app_schedule AS schedule ON schedule.id = kept.id
WHERE schedule.retry_at IS NULL OR schedule.retry_at <= %s
"""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Follower:
    """An asset scheduled by assets with new partitions, with the dependencies on these assets."""

    schedule: Schedule
    edges: list[AssetDependency]

    @property
    def asset(self) -> Asset:
        return self.edges[0].downstream


def process_outbox(now: datetime) -> int:
    """Queue the partitions that the runs and reports in the outbox have made due; return the number
    of entries examined.

    New entries, and failed entries whose pause has ended, each have a share of every call, so that
    neither kind keeps the other waiting.
    """
    if not Outbox.objects.exists():
        return 0
    # Entries kept for schedules that pause after a failure are not read.
    new_rows = Outbox.objects.filter(schedule=None, not_before=None).order_by("id")
    retry_rows = Outbox.objects.filter(not_before__lte=now).order_by("not_before", "id")
    retry_rows = retry_rows.filter(Q(schedule=None) | Q(schedule__in=_ready_schedules(now)))
    if not new_rows.exists() and not retry_rows.exists():
        return 0
    with transaction.atomic():
        entries = list(retry_rows.select_for_update(skip_locked=True)[:_RETRIED_AT_ONCE])
        room = _RUNS_AT_ONCE - len(entries)
        entries += new_rows.select_for_update(skip_locked=True)[:room]
        # `_affordable` keeps the first entries of this order.
        entries.sort(key=attrgetter("id"))
        entries = _affordable(entries)
        for entry, error in in_halves(entries, partial(_evaluate_entries, now=now)):
            _postpone(entry, error, now)
        nudge_dispatch()
    return len(entries)


def _ready_schedules(now: datetime) -> list[int]:
    """Return the ids of schedules that entries are kept for and that may be tried now."""
    with connection.cursor() as cursor:
        cursor.execute(_READY, [now])
        return [schedule_id for (schedule_id,) in cursor.fetchall()]


def _affordable(entries: Sequence[Outbox]) -> list[Outbox]:
    """Return the first entries, at least one, whose partitions fit into one transaction. The other
    entries are next.
    """
    runs = _sizes(Run, (entry.run_id for entry in entries))
    reports = _sizes(WriteReport, (entry.report_id for entry in entries))
    room = settings.MAX_PARTITIONS_PER_TRANSACTION
    for position, entry in enumerate(entries):
        room -= runs.get(entry.run_id, 0) + reports.get(entry.report_id, 0)
        if room < 0:
            return list(entries[: max(position, 1)])
    return list(entries)


def _sizes(model: type[Run | WriteReport], ids: Iterable[int | None]) -> dict[int | None, int]:
    rows = model.objects.filter(pk__in={pk for pk in ids if pk is not None})
    return dict(rows.values_list("pk", "partition_count"))


def _evaluate_entries(entries: Sequence[Outbox], *, now: datetime) -> None:
    """Evaluate the assets downstream of the entries; keep the entries for schedules that failed or
    whose partitions another transaction has locked.

    The row of a schedule holds the time of the next try: an entry that is already kept for the
    schedule is not written once more.
    """
    # Deleted first, so that a transaction that records other partitions of such a run waits, and
    # inserts the entry again.
    Outbox.objects.filter(pk__in=[row.pk for row in entries if row.schedule_id is None]).delete()
    new_partitions = _materialized_by(entries)
    errors: dict[int, Exception] = {}
    unevaluated_writes = _writes_of_locked(new_partitions, now)
    locked_ids = {schedule.pk for schedule in unevaluated_writes}
    followers, paused_edges = _followers(new_partitions)
    for follower in followers:
        schedule = follower.schedule
        upstream_partitions = _partitions_upstream_of(follower, entries, new_partitions)
        if not upstream_partitions:
            continue
        if schedule.retry_at is None or schedule.retry_at <= now:
            with isolated(follower.asset) as outcome:
                _evaluate(follower, upstream_partitions, now)
            if outcome.error is None:
                forget_failures([schedule])
                continue
            if isinstance(outcome.error, PartitionsLocked):
                locked_ids.add(schedule.pk)
            else:
                errors[schedule.pk] = outcome.error
        writes = unevaluated_writes.setdefault(schedule, set())
        writes |= {partition.write for partition in upstream_partitions}
    # After the evaluations: until the end of the transaction no person can unpause these assets.
    for schedule, writes in keep_for_missed(paused_edges, entries, new_partitions).items():
        unevaluated_writes.setdefault(schedule, set()).update(writes)
        locked_ids.add(schedule.pk)
    retried_at = record_failures(errors, now)
    # The entries hold the times that no schedule row holds: of locked partitions, and of schedules
    # whose row another transaction holds.
    entry_retries = dict.fromkeys(locked_ids, now + LOOK_AGAIN)
    entry_retries |= dict.fromkeys(errors.keys() - retried_at.keys(), now + FIRST_PAUSE)
    _keep_entries(
        entries, unevaluated_writes, retried_at | entry_retries, rewritten=entry_retries.keys()
    )


def _writes_of_locked(
    new_partitions: Sequence[NewPartition], now: datetime
) -> dict[Schedule, set[Write]]:
    """Have the partitions examined that wait for the assets of the new partitions to be fresh;
    return the writes to look at again for schedules whose waiting partitions are locked.
    """
    upstream_ids = {partition.asset_id for partition in new_partitions}
    locked_assets = examine_waiting_for(upstream_ids, now)
    if not locked_assets:
        return {}
    writes: dict[Schedule, set[Write]] = {}
    for asset in Asset.objects.filter(pk__in=locked_assets).select_related("producer__schedule"):
        schedule = Schedule.of(asset)
        if schedule is not None:
            writes.setdefault(schedule, set()).update(
                partition.write
                for partition in new_partitions
                if partition.asset_id in locked_assets[asset.pk]
            )
    return writes


def _keep_entries(
    entries: Sequence[Outbox],
    unevaluated_writes: Mapping[Schedule, set[Write]],
    retried_at: Mapping[int, datetime],
    *,
    rewritten: Collection[int],
) -> None:
    """Insert an entry for each write that is not yet evaluated for a schedule, and delete the
    entries of evaluated schedules. Existing entries of ``rewritten`` schedules get the new time.
    """
    required_keys = {
        (schedule.pk, write) for schedule, writes in unevaluated_writes.items() for write in writes
    }
    existing_entries = {
        (row.schedule_id, (row.run_id, row.report_id)): row for row in entries if row.schedule_id
    }
    evaluated_ids = [row.pk for key, row in existing_entries.items() if key not in required_keys]
    if evaluated_ids:
        Outbox.objects.filter(pk__in=evaluated_ids).delete()
    for schedule_id in sorted(rewritten):
        rows = [
            row.pk
            for key, row in existing_entries.items()
            if key in required_keys and key[0] == schedule_id
        ]
        Outbox.objects.filter(pk__in=rows).update(not_before=retried_at[schedule_id])
    # The insert waits for an entry that another transaction evaluates: that transaction may not
    # have seen all of the run.
    Outbox.objects.bulk_create(
        [
            Outbox(
                run_id=run_id,
                report_id=report_id,
                schedule=schedule,
                not_before=retried_at.get(schedule.pk) or schedule.retry_at,
            )
            for schedule, writes in unevaluated_writes.items()
            for run_id, report_id in sorted(writes, key=repr)
            if (schedule.pk, (run_id, report_id)) not in existing_entries
        ],
        update_conflicts=True,
        unique_fields=["run", "report", "schedule"],
        update_fields=["not_before"],
    )


def _partitions_upstream_of(
    follower: _Follower, entries: Sequence[Outbox], new_partitions: Sequence[NewPartition]
) -> list[NewPartition]:
    """Return the partitions upstream of the follower whose entries are to be evaluated for it."""
    writes = {
        (entry.run_id, entry.report_id)
        for entry in entries
        if entry.schedule_id in (None, follower.schedule.pk)
    }
    upstream_ids = {edge.upstream_id for edge in follower.edges}
    return [
        partition
        for partition in new_partitions
        if partition.write in writes and partition.asset_id in upstream_ids
    ]


def _postpone(entry: Outbox, error: Exception, now: datetime) -> None:
    """Put off an entry that cannot even be read: no schedule is at fault."""
    log.error(
        "an entry of the outbox could not be read", extra={"entry": str(entry)}, exc_info=error
    )
    entry.failures += 1
    entry.not_before = now + pause_after(entry.failures)
    entry.save(update_fields=["failures", "not_before"])


def _materialized_by(entries: Iterable[Outbox]) -> list[NewPartition]:
    """Return the partitions that the runs and reports of the entries have materialized."""
    runs = [entry.run_id for entry in entries if entry.run_id is not None]
    reports = [entry.report_id for entry in entries if entry.report_id is not None]
    with connection.cursor() as cursor:
        cursor.execute(_MADE, [Trigger.BACKFILL, runs, reports, DISCOVERY])
        return [
            NewPartition(
                write=(run, report),
                asset_id=asset_id,
                identity=identity,
                key=key,
                at=created_at,
                before=previous_at,
            )
            for run, report, asset_id, identity, key, created_at, previous_at in cursor.fetchall()
        ]


def _followers(
    new_partitions: Sequence[NewPartition],
) -> tuple[list[_Follower], list[AssetDependency]]:
    """Return the assets that are scheduled by the assets of the new partitions, and the
    dependencies of paused assets on these assets, also on an asset that is to be fresh.
    """
    paused_edges: list[AssetDependency] = []
    # By producer: of the assets that one function makes, one is requested, and its run makes all.
    followers: dict[int, _Follower] = {}
    for edge in examined_edges().filter(
        upstream__in={partition.asset_id for partition in new_partitions}
    ):
        producer = edge.downstream.producer
        schedule = Schedule.of(edge.downstream)
        # An asset stays in force while its own file is broken, even if its function no longer makes
        # the asset.
        if producer is None or edge.downstream.name not in producer.outlet_names:
            continue
        if schedule is None or schedule.rule is None:
            continue
        if edge.downstream.paused:
            paused_edges.append(edge)
            continue
        if not edge.scheduling:
            continue
        follower = followers.setdefault(producer.pk, _Follower(schedule, [edge]))
        if edge.downstream == follower.asset and edge not in follower.edges:
            follower.edges.append(edge)
    return list(followers.values()), paused_edges


def _evaluate(follower: _Follower, new_partitions: Sequence[NewPartition], now: datetime) -> None:
    """Queue the partitions of the asset that the new upstream partitions make due: together, unless
    these are more than one write may queue, else write by write, each up to that limit.
    """
    target = scheduled_target(follower.asset)
    unqueued = _touched(follower, target, new_partitions, now)
    if len(unqueued) <= settings.MAX_PARTITIONS_PER_TICK:
        touched = TouchedPartitions(follower.schedule, target, unqueued)
        queue_due(touched, _asset_keys(new_partitions), now, _first_recorded_at(new_partitions))
        return
    for write_partitions in _by_write(new_partitions):
        write_touched = _capped(
            target.asset, _touched(follower, target, write_partitions, now), now
        )
        # Partitions that an earlier write has queued do not come due again.
        touched = TouchedPartitions(follower.schedule, target, write_touched & unqueued)
        queue_due(touched, _asset_keys(write_partitions), now, _first_recorded_at(write_partitions))
        unqueued -= write_touched


def _by_write(new_partitions: Sequence[NewPartition]) -> Iterable[list[NewPartition]]:
    writes: dict[object, list[NewPartition]] = {}
    for partition in new_partitions:
        writes.setdefault(partition.write, []).append(partition)
    return writes.values()


def _first_recorded_at(new_partitions: Sequence[NewPartition]) -> datetime:
    """Return when the first of the writes was recorded: a tick between that time and the evaluation
    of the writes has found the new partitions materialized.
    """
    return min(partition.at for partition in new_partitions)


def _asset_keys(new_partitions: Sequence[NewPartition]) -> set[tuple[int, str]]:
    return {(partition.asset_id, partition.key) for partition in new_partitions}


def _touched(
    follower: _Follower, target: Target, new_partitions: Sequence[NewPartition], now: datetime
) -> slicewise.PartitionSet:
    """Return the partitions of the target that the new upstream partitions concern, due or not."""
    schedule = follower.schedule
    since = schedule.followed_since
    sets: list[slicewise.PartitionSet] = []
    for edge in follower.edges:
        upstream_partitions = [
            partition for partition in new_partitions if partition.asset_id == edge.upstream_id
        ]
        sets.append(affected(edge, target, upstream_partitions, since=since, now=now))
    return reduce(or_, sets)


def _capped(
    asset: Asset, partitions: slicewise.PartitionSet, now: datetime
) -> slicewise.PartitionSet:
    """Return the newest partitions, as many as one write may queue; record the others as a
    truncation.
    """
    most = settings.MAX_PARTITIONS_PER_TICK
    if len(partitions) <= most:
        return partitions
    unqueued = partitions[: len(partitions) - most]
    record_truncation(asset, unqueued, queued=most, now=now)
    return partitions[len(partitions) - most :]

"""Runs of assets with ``depends_on_past``: each waits for the partition before its own.

A waiting run has the state ``waiting`` and holds its partitions, and dispatch does not look at the
run.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection, transaction

from assets_app.execution.queue.awaited_partitions import due_for_check, postpone_checks
from assets_app.execution.queue.messages import nudge_dispatch
from assets_app.execution.queue.settling import release_skipped
from assets_app.execution.queue.transitions import move_all
from assets_app.models import Asset, ProducerVersion, RunState, SkipReason, Trigger
from slicewise.partitions import PartitionRow, partition_rows, partitions_of_last_windows

# A run waits for no partition before the first partition that was ever materialized or requested.
_AWAITED = """
SELECT requested.run_id, requested.asset_id, requested.identity, requested.key
FROM unnest(
    %(runs)s::bigint[], %(assets)s::bigint[], %(identities)s::text[], %(keys)s::text[],
    %(segments)s::text[], %(starts)s::timestamptz[]
) AS requested(run_id, asset_id, identity, key, segment, start)
LEFT JOIN assets_app_assetpartition AS earlier
    ON earlier.asset_id = requested.asset_id AND earlier.identity = requested.identity COLLATE "C"
   AND earlier.key = requested.key COLLATE "C"
WHERE (earlier.id IS NULL OR earlier.held_by_id IS NOT NULL OR earlier.state <> 'materialized')
  AND EXISTS (
    SELECT FROM assets_app_assetpartition AS past
    WHERE past.asset_id = requested.asset_id AND past.identity = requested.identity COLLATE "C"
      AND past.segment = requested.segment COLLATE "C" AND past.window_start < requested.start
      AND (past.version > 0 OR past.held_by_id IS NOT NULL OR past.state <> 'missing')
  )
"""

_LOOK = """
SELECT run.id, run.trigger, run.created_at,
       coalesce(bool_and(earlier.state = 'materialized' AND earlier.held_by_id IS NULL), true),
       coalesce(bool_or(earlier.held_by_id IS NULL AND (
           earlier.state IN ('failed', 'canceled') OR earlier.skip_reason = 'upstream_failed'
       )), false),
       coalesce(bool_or(earlier.held_by_id IS NULL AND (
           earlier.state = 'missing' OR earlier.skip_reason <> 'upstream_failed'
       )), false),
       coalesce(array_agg(holder.id) FILTER (
           WHERE holder.state = 'waiting' AND holder.created_at < %(late)s), '{}')
FROM assets_app_run AS run
LEFT JOIN assets_app_awaitedpartition AS awaited ON awaited.run_id = run.id
LEFT JOIN LATERAL (
    SELECT coalesce(max(partition.state), 'missing') AS state,
        max(partition.held_by_id) AS held_by_id,
           max(CASE WHEN partition.state = 'skipped' THEN coalesce(last.skip_reason, '') END)
               AS skip_reason
    FROM assets_app_assetpartition AS partition
    LEFT JOIN assets_app_run AS last ON last.id = partition.last_run_id
    WHERE partition.asset_id = awaited.asset_id AND partition.identity = awaited.identity
      AND partition.key = awaited.key
) AS earlier ON awaited.id IS NOT NULL
LEFT JOIN assets_app_run AS holder ON holder.id = earlier.held_by_id
WHERE run.state = 'waiting' AND run.id = ANY(%(runs)s)
GROUP BY run.id ORDER BY run.id
"""


_AT_ONCE = 1_000


class EarlierPartition(NamedTuple):
    """A partition that has to be materialized before a run starts."""

    run_id: int
    asset_id: int
    identity: str
    key: str
    segment: str
    start: datetime


class _WaitingRun(NamedTuple):
    id: int
    trigger: str
    since: datetime
    is_ready: bool
    is_failed: bool
    is_missing: bool
    # The runs that hold the partitions before, and that have waited too long themselves.
    late_ahead: Sequence[int]


def waits_for_past(version: ProducerVersion) -> bool:
    """Return whether partitions of this version's assets wait for the partitions before."""
    return version.spec.depends_on_past


def earlier_partitions(
    run_id: int,
    asset: Asset,
    trigger: Trigger,
    rows: Sequence[PartitionRow],
    requested_keys: Collection[str] = (),
) -> Iterator[EarlierPartition]:
    """Yield the partitions before the partitions of a run, without the run's own partitions.

    A person's request goes ahead: its runs wait only for partitions of the same request, whose keys
    are ``requested_keys``.
    """
    definition, own_keys = asset.definition, {row.key for row in rows}
    for row in rows:
        if row.start is None or definition is None:
            continue
        earlier_rows = partition_rows(
            definition, partitions_of_last_windows(definition, row.start, 1)
        )
        earlier = next(
            (candidate for candidate in earlier_rows if candidate.segment == row.segment), None
        )
        if earlier is None or earlier.key in own_keys:
            continue
        if trigger != Trigger.MANUAL or earlier.key in requested_keys:
            yield EarlierPartition(
                run_id, asset.pk, asset.identity, earlier.key, row.segment, row.start
            )


def awaited_by_run(earlier: Sequence[EarlierPartition]) -> dict[int, list[tuple[int, str, str]]]:
    """Return the earlier partitions that runs have to wait for, by run, each as asset, identity and
    key.

    Call after the claim.
    """
    if not earlier:
        return {}
    runs, assets, identities, keys, segments, starts = zip(*earlier, strict=True)
    columns: Mapping[str, Any] = {
        "runs": list(runs), "assets": list(assets), "identities": list(identities),
        "keys": list(keys), "segments": list(segments), "starts": list(starts),
    }  # fmt: skip
    awaited: dict[int, list[tuple[int, str, str]]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_AWAITED, columns)
        for run_id, *partition in cursor.fetchall():
            awaited.setdefault(run_id, []).append((partition[0], partition[1], partition[2]))
    return awaited


def missing_before(asset: Asset, rows: Sequence[PartitionRow]) -> list[str]:
    """Return keys of missing earlier partitions that should exist, for a message to a person."""
    awaited = awaited_by_run(list(earlier_partitions(0, asset, Trigger.SCHEDULE, rows)))
    return [key for _, _, key in awaited.get(0, [])]


@transaction.atomic
def wake_waiting(now: datetime) -> int:
    """Queue or skip the waiting runs that need not wait any longer; return the number of both.

    A run is queued once the partition before its own is materialized, and skipped once the run has
    waited too long. A check reads runs that the end of another run concerns, and other runs now and
    then, so that runs that go on waiting cost nothing
    (`assets_app.execution.queue.awaited_partitions`).

    A run of a backfill is skipped as soon as the partition before has failed, or is missing and no
    run is to materialize it, so that the backfill can end. A backfill creates no run before the
    runs of earlier partitions (`backfills_app.services.advance.batching`), so a partition that the
    backfill is still to materialize does not count as missing.
    """
    due = due_for_check(now, _AT_ONCE)
    if not due:
        return 0
    late = now - timedelta(hours=settings.DEPENDS_ON_PAST_HOURS)
    with connection.cursor() as cursor:
        cursor.execute(_LOOK, {"runs": sorted({row.run_id for row in due}), "late": late})
        waiting = [_WaitingRun(*row) for row in cursor.fetchall()]
    ready = [run.id for run in waiting if run.is_ready]
    changed = len(move_all(ready, RunState.WAITING, RunState.QUEUED, queued_at=now)) if ready else 0
    over: dict[SkipReason, list[int]] = {}
    for run_id, reason in _skip_reasons(waiting, late).items():
        over.setdefault(reason, []).append(run_id)
    for reason, run_ids in over.items():
        changed += _skip(run_ids, reason, now)
    postpone_checks(due, now)
    if changed:
        nudge_dispatch()
    return changed


def _skip_reasons(waiting: Sequence[_WaitingRun], late: datetime) -> dict[int, SkipReason]:
    """Return why waiting runs are skipped, by run; all other runs start or go on waiting.

    After a stop of the servers, runs that wait for each other have waited too long all at once: the
    reason of the first one passes on to the others, as if each had been checked in its time.
    """
    undecided = {run.id: run for run in waiting if not run.is_ready}
    reasons: dict[int, SkipReason] = {}
    is_cycle = False
    while undecided:
        count = len(undecided)
        for run in list(undecided.values()):
            if is_cycle or undecided.keys().isdisjoint(run.late_ahead):
                del undecided[run.id]
                if (reason := _skip_reason(run, reasons, late)) is not None:
                    reasons[run.id] = reason
        # Runs of several partitions may wait for each other.
        is_cycle = len(undecided) == count
    return reasons


def _skip_reason(
    run: _WaitingRun, reasons: Mapping[int, SkipReason], late: datetime
) -> SkipReason | None:
    """Return why a run is skipped, given the reasons of runs ahead; None for a run that waits."""
    is_late = run.since < late
    reasons_ahead = {
        reasons.get(ahead) for ahead in run.late_ahead if ahead in reasons or ahead < run.id
    }
    if is_late and None in reasons_ahead:
        # A run ahead is late as well, and is not of this check: its reason comes first.
        return None
    is_missing = run.is_missing or bool(reasons_ahead - {None, SkipReason.UPSTREAM_FAILED})
    if run.trigger == Trigger.BACKFILL and is_missing:
        return SkipReason.UPSTREAM_MISSING
    is_failed = run.is_failed or SkipReason.UPSTREAM_FAILED in reasons_ahead
    if is_failed and (run.trigger == Trigger.BACKFILL or is_late):
        return SkipReason.UPSTREAM_FAILED
    return SkipReason.WAIT_TIMEOUT if is_late else None


def _skip(run_ids: Sequence[int], reason: SkipReason, now: datetime) -> int:
    message = {
        SkipReason.UPSTREAM_FAILED: "The previous partition was not materialized.",
        SkipReason.UPSTREAM_MISSING: "The previous partition is missing, and no run is to"
        " materialize it.",
        SkipReason.WAIT_TIMEOUT: "The run waited for the previous partition until the time limit"
        f" ({settings.DEPENDS_ON_PAST_HOURS:g} hours, setting DEPENDS_ON_PAST_HOURS).",
    }[reason]
    ended = move_all(
        run_ids, RunState.WAITING, RunState.SKIPPED, ended_at=now, skip_reason=reason, error=message
    )
    release_skipped(ended)
    return len(ended)

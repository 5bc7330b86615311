"""Admission: waiting partitions become runs, only a little ahead of the runs that may be active, so
that a million runs never stand in the queue.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic

from django.db import OperationalError, transaction

import slicewise
from assets_app.execution.database import is_lock_timeout, limit_lock_waits
from assets_app.execution.queue.claims import RunSpec, claim
from assets_app.execution.queue.messages import nudge_dispatch
from assets_app.models import TERMINAL_STATES, Run, SkipReason, Target, Trigger
from backfills_app.models import Backfill, BackfillPartition, BackfillState
from backfills_app.services.advance import waiting
from backfills_app.services.advance.admitted_rows import holders_of, mark_active, mark_skipped
from backfills_app.services.advance.batching import (
    WaitingBatch,
    next_batch,
    split_into_runs,
)
from backfills_app.services.bookkeeping.counting import (
    check_references,
    derive_states,
    shift_counts,
)
from backfills_app.services.bookkeeping.locks import try_lock
from backfills_app.services.bookkeeping.messages import nudge_advance
from backfills_app.services.partitions.decisions import decide, starts_later
from backfills_app.services.partitions.positions import ranges_of
from backfills_app.services.partitions.stored import StoredScope, stored_scopes

log = logging.getLogger(__name__)

State = BackfillPartition.State
# Unfinished runs per run that may be active: enough that a slot never waits for admission.
AHEAD = 3
# The number of partitions that one admission processes, where many are skipped.
_MOST_AT_ONCE = 50_000
# A backfill that waits for runs of other backfills is checked again after so many seconds, even
# without a note that these runs have ended.
_RECHECK_AFTER = 5.0
# A run that records a million partitions locks the rows for a minute; other backfills go on
# meanwhile. But to claim a million partitions takes as long, and the whole claim is undone if one
# row stays locked for longer than the limit: the limit doubles with each try of a backfill.
_FIRST_WAIT_MS, _LONGEST_WAIT_MS = 200, 10_000
# Admissions in a row that end at locked partitions before an error is raised: some 12 s of waiting.
_REPORTED_AFTER = 6
_lock_timeouts: dict[int, int] = {}
_checked_at: dict[int, float] = {}
_ADMITTED = (BackfillState.SCHEDULED, BackfillState.RUNNING)


class PartitionsLocked(Exception):
    """In several admissions in a row, other transactions had locked partitions that a backfill was
    to claim.
    """


@dataclass(slots=True)
class _StepResult:
    """The runs and partitions of one step of admission."""

    runs: int = 0
    partitions: int = 0
    skipped: list[int] = field(default_factory=list)
    left_to: set[int] = field(default_factory=set)


def admit(backfill_id: int) -> int | None:
    """Create runs for the next waiting partitions of one backfill; return the number of partitions
    processed.

    Returns None for a backfill without a turn, because another thread has its lock, or because
    other transactions have locked partitions to claim: the next admission tries again, and waits
    for longer. Raises PartitionsLocked where that happens several times in a row.
    """
    tries = _lock_timeouts.get(backfill_id, 0)
    longest_wait = min(_FIRST_WAIT_MS * 2**tries, _LONGEST_WAIT_MS)
    try:
        partition_count = _admit_next(backfill_id, longest_wait)
    except OperationalError as error:
        if not is_lock_timeout(error):
            raise
        _lock_timeouts[backfill_id] = tries = tries + 1
        log.info("partitions are locked", extra={"backfill": backfill_id, "tries": tries})
        if tries >= _REPORTED_AFTER:
            raise PartitionsLocked(
                f"Other transactions had locked the next partitions {tries} times in a row; the"
                f" last admission waited {longest_wait / 1000:g} s for the locks."
            ) from error
        return None
    if partition_count is not None:
        _lock_timeouts.pop(backfill_id, None)
    return partition_count


def _admit_next(backfill_id: int, longest_wait: int) -> int | None:
    with transaction.atomic():
        limit_lock_waits(f"{longest_wait}ms")
        if not try_lock(backfill_id):
            return None
        backfill = (
            Backfill.objects.select_related("group", "submitted_by")
            .filter(pk=backfill_id, state__in=_ADMITTED, assets__waiting__gt=0)
            .first()
        )
        if backfill is None or backfill.group.paused or starts_later(backfill):
            return 0
        if backfill.pending.exists():
            # Pending requests about the backfill come first.
            return 0
        unfinished = _unfinished(backfill)
        room = AHEAD * backfill.max_active_runs - unfinished
        if room < backfill.max_active_runs:
            # Enough runs are in the queue: it is refilled by several runs, not run by run.
            return 0
        scopes = stored_scopes(backfill)
        waiting.mark_ready_after(scopes, waiting.consume_ended_runs(backfill, scopes))
        before = {scope: _counts(scope) for scope in scopes}
        partition_count = _fill(backfill, scopes, room)
        check_references(partition_count)
        # Each row once, in one order: transactions that end runs lock these rows too.
        for scope in sorted(scopes, key=lambda member: member.row.pk):
            now = _counts(scope)
            shift_counts(scope.row.pk, {name: now[name] - before[scope][name] for name in now})
        if not partition_count and not unfinished:
            _recheck_waiting(backfill, scopes)
        derive_states([backfill_id])
        return partition_count


def _counts(scope: StoredScope) -> dict[str, int]:
    row = scope.row
    return {"waiting": row.waiting, "active": row.active, "skipped": row.skipped}


def _unfinished(backfill: Backfill) -> int:
    return Run.objects.filter(group=backfill.group).exclude(state__in=TERMINAL_STATES).count()


def _recheck_waiting(backfill: Backfill, scopes: Sequence[StoredScope]) -> None:
    has_waiting = any(scope.row.waiting for scope in scopes)
    if has_waiting and monotonic() - _checked_at.get(backfill.pk, 0.0) > _RECHECK_AFTER:
        _checked_at[backfill.pk] = monotonic()
        waiting.mark_all_ready(scopes)


def _fill(backfill: Backfill, scopes: Sequence[StoredScope], room: int) -> int:
    """Create runs until the room is filled; return the number of partitions processed.

    Downstream assets come first: a partition with all its upstream data is not left behind while
    more and more upstream partitions are materialized.
    """
    total = 0
    for _ in scopes:
        ended_by_scope: dict[StoredScope, slicewise.PartitionSet] = {}
        for scope in reversed(scopes):
            result = (
                _admit(backfill, scope, room) if room > 0 and scope.row.waiting else _StepResult()
            )
            waiting.record_awaited_runs(backfill, scopes, result.left_to)
            room -= result.runs
            total += result.partitions
            if result.skipped:
                ended_by_scope[scope] = scope.positions.at(ranges_of(result.skipped))
        if not ended_by_scope:
            break
        waiting.mark_ready_after(scopes, ended_by_scope)
    else:
        if len(scopes) > 1:
            # The partitions that were skipped last may make others ready.
            nudge_advance()
    return total


def _admit(backfill: Backfill, scope: StoredScope, room: int) -> _StepResult:
    """Process the next partitions of an asset; read further where these give no run."""
    result, read_factor = _StepResult(), 1
    while result.runs < room:
        room_left = room - result.runs
        batch = next_batch(scope, backfill.order, runs=room_left * read_factor)
        step = _admit_batch(backfill, scope, batch, room_left) if batch.ready else _StepResult()
        result.runs += step.runs
        result.partitions += step.partitions
        result.skipped += step.skipped
        result.left_to |= step.left_to
        if batch.is_last or (not step.partitions and batch.is_long):
            break
        # Only skips, or no full run among them: read more at a time.
        read_factor = 1 if step.runs else read_factor * 4
        if result.partitions >= _MOST_AT_ONCE:
            nudge_advance()
            break
    return result


def _admit_batch(
    backfill: Backfill, scope: StoredScope, batch: WaitingBatch, room: int
) -> _StepResult:
    by_position = {row.position: row for row in batch.ready}
    decision = decide(backfill, scope, scope.positions.at(ranges_of(by_position)))
    reasons = {
        position: reason
        for reason, partitions in decision.skipped.items()
        for first, stop in scope.positions.ranges(partitions)
        for position in range(first, stop)
    }
    planned = list(
        split_into_runs(
            scope, batch, set(reasons), order=backfill.order, allow_holes=backfill.allow_holes
        )
    )[:room]
    run_terms = RunSpec(
        target=Target(scope.asset),
        producer_version=scope.version,
        group=backfill.group,
        trigger=Trigger.BACKFILL,
        params=scope.params,
        requested_by=backfill.submitted_by,
    )
    claimed, held_partitions = (
        claim(run_terms, [[row.partition for row in chunk] for chunk in planned])
        if planned
        else ([], [])
    )
    by_key = {row.partition.key: row for row in batch.ready}
    reasons |= {by_key[row.key].position: SkipReason.IN_FLIGHT for row in held_partitions}
    mark_active({key: row.pk for key, row in by_key.items()}, claimed)
    holders = holders_of(scope, by_position, reasons)
    # A partition is skipped as in flight only if a run holds it, otherwise no run would materialize
    # it: a partition that was released meanwhile waits for its next turn.
    reasons = {
        position: reason
        for position, reason in reasons.items()
        if reason != SkipReason.IN_FLIGHT or position in holders
    }
    mark_skipped(by_position, reasons, holders)
    scope.row.waiting -= len(claimed) + len(reasons)
    scope.row.active += len(claimed)
    scope.row.skipped += len(reasons)
    if claimed:
        nudge_dispatch()
    runs = len({claimed_partition.run_id for claimed_partition in claimed})
    return _StepResult(runs, len(claimed) + len(reasons), list(reasons), set(holders.values()))

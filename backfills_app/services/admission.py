"""Turns waiting partitions into runs, a little ahead of what may be active: a million never stands
in the queue.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic

from django.db import OperationalError, connection, transaction

import slicewise
from assets_app.execution.claims import ClaimedPartition, RunTerms, claim
from assets_app.execution.database import is_lock_timeout, limit_lock_waits
from assets_app.execution.messages import nudge_dispatch
from assets_app.models import TERMINAL_STATES, Run, SkipReason, Trigger
from assets_app.queries.clock import database_now
from backfills_app.models import Backfill, BackfillPartition, BackfillState
from backfills_app.services.counting import check_references, derive_states, shift_counts
from backfills_app.services.judging import judge, runs_holding
from backfills_app.services.locks import try_lock
from backfills_app.services.messages import nudge_advance
from backfills_app.services.places import ranges_of
from backfills_app.services.stored import StoredPart, stored_parts
from backfills_app.services.turns import Turn, WaitingRow, chunks, next_turn
from backfills_app.services.waiting import let_go_after, let_go_all, take_notes, watch

log = logging.getLogger(__name__)

State = BackfillPartition.State
# Runs in the queue or at work, per run that may be active: enough that a slot never waits for
# admission.
AHEAD = 3
# Partitions that one admission deals with, where it has to skip many.
_MOST_AT_ONCE = 50_000
# A backfill that waits for runs of others is looked at again even if nobody says that they ended.
_LOOK_AGAIN_AFTER = 5.0
# A run that records a million partitions has their rows for a minute: others go on meanwhile. But
# to claim a million takes as long, and all of it is undone where one row is locked for longer than
# that: a backfill waits twice as long each time.
_FIRST_WAIT_MS, _LONGEST_WAIT_MS = 200, 10_000
# Turns in a row that end at locked partitions until people are told: some 12 s of waiting.
_SAID_AFTER = 6
_refused: dict[int, int] = {}
_looked: dict[int, float] = {}
_ADMITTED = (BackfillState.SCHEDULED, BackfillState.RUNNING)


class PartitionsLocked(Exception):
    """Turn after turn, other transactions had locked partitions that a backfill was to claim."""


@dataclass(slots=True)
class _Dealt:
    """What one look at an asset has come to."""

    runs: int = 0
    partitions: int = 0
    skipped: list[int] = field(default_factory=list)
    left_to: set[int] = field(default_factory=set)


def admit(backfill_id: int) -> int | None:
    """Make runs of the next waiting partitions of one backfill.

    How many partitions were dealt with; None where it had no turn, since another thread gives it
    one, or others have locked partitions that it was to claim: the next admission tries again, and
    waits for longer. Raises PartitionsLocked where that happens several times in a row.
    """
    refused = _refused.get(backfill_id, 0)
    longest_wait = min(_FIRST_WAIT_MS * 2**refused, _LONGEST_WAIT_MS)
    try:
        dealt = _admit_next(backfill_id, longest_wait)
    except OperationalError as error:
        if not is_lock_timeout(error):
            raise
        _refused[backfill_id] = refused = refused + 1
        log.info("partitions are locked", extra={"backfill": backfill_id, "turns": refused})
        if refused >= _SAID_AFTER:
            raise PartitionsLocked(
                f"Other transactions had locked partitions whose turn it is, {refused} times in a"
                f" row; the last time it waited {longest_wait / 1000:g} s for them."
            ) from error
        return None
    if dealt is not None:
        _refused.pop(backfill_id, None)
    return dealt


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
        if backfill is None or backfill.group.paused or _is_early(backfill):
            return 0
        if backfill.pending.exists():
            # Whatever was asked of it comes first.
            return 0
        unfinished = _unfinished(backfill)
        room = AHEAD * backfill.max_active_runs - unfinished
        if room < backfill.max_active_runs:
            # Enough is in the queue: refilled by the handful, not run by run.
            return 0
        parts = stored_parts(backfill)
        let_go_after(parts, take_notes(backfill, parts))
        before = {part: _counts(part) for part in parts}
        dealt = _fill(backfill, parts, room)
        check_references(dealt)
        # Once for each, in one order: whoever ends runs at the same time takes these rows too.
        for part in sorted(parts, key=lambda each: each.row.pk):
            now = _counts(part)
            shift_counts(part.row.pk, {name: now[name] - before[part][name] for name in now})
        if not dealt and not unfinished:
            _look_again(backfill, parts)
        derive_states([backfill_id])
        return dealt


def _counts(part: StoredPart) -> dict[str, int]:
    row = part.row
    return {"waiting": row.waiting, "active": row.active, "skipped": row.skipped}


def _is_early(backfill: Backfill) -> bool:
    return backfill.scheduled_date is not None and backfill.scheduled_date > database_now()


def _unfinished(backfill: Backfill) -> int:
    return Run.objects.filter(group=backfill.group).exclude(state__in=TERMINAL_STATES).count()


def _look_again(backfill: Backfill, parts: Sequence[StoredPart]) -> None:
    waiting = any(part.row.waiting for part in parts)
    if waiting and monotonic() - _looked.get(backfill.pk, 0.0) > _LOOK_AGAIN_AFTER:
        _looked[backfill.pk] = monotonic()
        let_go_all(parts)


def _fill(backfill: Backfill, parts: Sequence[StoredPart], room: int) -> int:
    """Fill the room; how many partitions were dealt with.

    What is downstream comes first: a partition that all is there for is not left behind while more
    and more is made upstream.
    """
    total = 0
    for _ in parts:
        settled: dict[StoredPart, slicewise.PartitionSet] = {}
        for part in reversed(parts):
            dealt = _admit(backfill, part, room) if room > 0 and part.row.waiting else _Dealt()
            watch(backfill, parts, dealt.left_to)
            room -= dealt.runs
            total += dealt.partitions
            if dealt.skipped:
                settled[part] = part.places.at(ranges_of(dealt.skipped))
        if not settled:
            break
        let_go_after(parts, settled)
    else:
        if len(parts) > 1:
            # What was skipped last may let others go.
            nudge_advance()
    return total


def _admit(backfill: Backfill, part: StoredPart, room: int) -> _Dealt:
    """Look at the asset's next partitions, further where these come to no run."""
    dealt, most = _Dealt(), 1
    while dealt.runs < room:
        left = room - dealt.runs
        turn = next_turn(part, backfill.order, runs=left * most)
        step = _deal_with(backfill, part, turn, left) if turn.ready else _Dealt()
        dealt.runs += step.runs
        dealt.partitions += step.partitions
        dealt.skipped += step.skipped
        dealt.left_to |= step.left_to
        if turn.is_last or (not step.partitions and turn.is_long):
            break
        # Nothing but skips, or no full run among them: look at more at a time.
        most = 1 if step.runs else most * 4
        if dealt.partitions >= _MOST_AT_ONCE:
            nudge_advance()
            break
    return dealt


def _deal_with(backfill: Backfill, part: StoredPart, turn: Turn, room: int) -> _Dealt:
    by_position = {row.position: row for row in turn.ready}
    verdict = judge(backfill, part, part.places.at(ranges_of(by_position)))
    reasons = {
        place: reason
        for reason, some in verdict.skipped.items()
        for first, stop in part.places.ranges(some)
        for place in range(first, stop)
    }
    planned = list(
        chunks(part, turn, set(reasons), order=backfill.order, allow_holes=backfill.allow_holes)
    )[:room]
    terms = RunTerms(
        asset=part.asset,
        producer_version=part.version,
        group=backfill.group,
        trigger=Trigger.BACKFILL,
        params=part.params,
        requested_by=backfill.submitted_by,
    )
    claimed, held = (
        claim(terms, [[row.partition for row in chunk] for chunk in planned])
        if planned
        else ([], [])
    )
    by_key = {row.partition.key: row for row in turn.ready}
    reasons |= {by_key[row.key].position: SkipReason.IN_FLIGHT for row in held}
    _mark_active({key: row.pk for key, row in by_key.items()}, claimed)
    holders = _holders(part, by_position, reasons)
    # Left to nobody, it would be made by nobody: what was let go meanwhile waits for its next turn.
    reasons = {
        place: reason
        for place, reason in reasons.items()
        if reason != SkipReason.IN_FLIGHT or place in holders
    }
    _skip(by_position, reasons, holders)
    part.row.waiting -= len(claimed) + len(reasons)
    part.row.active += len(claimed)
    part.row.skipped += len(reasons)
    if claimed:
        nudge_dispatch()
    runs = len({one.run_id for one in claimed})
    return _Dealt(runs, len(claimed) + len(reasons), list(reasons), set(holders.values()))


def _mark_active(by_key: dict[str, int], claimed: Sequence[ClaimedPartition]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE backfills_app_backfillpartition AS wanted
            SET state = 'active', slice_id = taken.slice_id, run_id = taken.run_id
            FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS taken(id, slice_id, run_id)
            WHERE wanted.id = taken.id
            """,
            [
                [by_key[piece.row.key] for piece in claimed],
                [piece.slice_id for piece in claimed],
                [piece.run_id for piece in claimed],
            ],
        )


def _holders(
    part: StoredPart, rows: Mapping[int, WaitingRow], reasons: Mapping[int, SkipReason]
) -> dict[int, int]:
    """The runs that make what is in flight, by the places of the partitions."""
    in_flight = {
        rows[place].partition.key: place
        for place, reason in reasons.items()
        if reason == SkipReason.IN_FLIGHT
    }
    return {in_flight[key]: run_id for key, run_id in runs_holding(part, list(in_flight)).items()}


def _skip(
    rows: Mapping[int, WaitingRow], reasons: Mapping[int, SkipReason], holders: Mapping[int, int]
) -> None:
    """With the run that makes those that are in flight: its end is waited for."""
    if not reasons:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE backfills_app_backfillpartition AS wanted
            SET state = 'skipped', reason = passed.reason, run_id = passed.run_id
            FROM unnest(%s::bigint[], %s::text[], %s::bigint[]) AS passed(id, reason, run_id)
            WHERE wanted.id = passed.id
            """,
            [
                [rows[place].pk for place in reasons],
                [reason.value for reason in reasons.values()],
                [holders.get(place) for place in reasons],
            ],
        )

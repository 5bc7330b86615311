"""Turns waiting partitions into runs, a little ahead of what may be active: a million never stands
in the queue.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from assets_app.execution.claims import ClaimedPartition, RunTerms, claim
from assets_app.execution.messages import nudge_dispatch
from assets_app.execution.requests import batches, partitions_per_run
from assets_app.models import (
    TERMINAL_STATES,
    AssetPartition,
    PartitionState,
    Run,
    SkipReason,
    Trigger,
)
from backfills_app.models import Backfill, BackfillAsset, BackfillPartition, BackfillState
from backfills_app.services.counting import derive_states, shift_counts
from backfills_app.services.locks import try_lock
from backfills_app.services.planning import states_left_out
from slicewise.rows import PartitionRow

State = BackfillPartition.State
# Runs in the queue or at work, per run that may be active: enough that a slot never waits for
# admission.
AHEAD = 3
_MOST_PARTITIONS_AT_ONCE = 20_000


def admit(backfill_id: int) -> int:
    """Make runs of the next waiting partitions of one backfill.

    How many partitions were dealt with.
    """
    with transaction.atomic():
        if not try_lock(backfill_id):
            return 0
        backfill = (
            Backfill.objects.select_related("group", "submitted_by")
            .filter(pk=backfill_id, state__in=(BackfillState.SCHEDULED, BackfillState.RUNNING))
            .first()
        )
        if backfill is None or backfill.group.paused or _is_early(backfill):
            return 0
        room = AHEAD * backfill.max_active_runs - _unfinished(backfill)
        if room < backfill.max_active_runs:
            # Enough is in the queue: refilled by the handful, not run by run.
            return 0
        dealt = sum(
            _admit(backfill, piece, room)
            for piece in backfill.assets.select_related(
                "asset__partition_definition", "producer_version"
            ).filter(waiting__gt=0)
        )
        derive_states([backfill_id])
        return dealt


def _is_early(backfill: Backfill) -> bool:
    return backfill.scheduled_date is not None and backfill.scheduled_date > timezone.now()


def _unfinished(backfill: Backfill) -> int:
    return Run.objects.filter(group=backfill.group).exclude(state__in=TERMINAL_STATES).count()


def _admit(backfill: Backfill, piece: BackfillAsset, room: int) -> int:
    waiting = _next_waiting(piece, _partitions_for(piece.strategy, room))
    wanted, existing = _without_existing(backfill, piece, waiting)
    planned = list(_plan(wanted, piece.strategy))[:room]
    terms = RunTerms(
        asset=piece.asset,
        producer_version=piece.producer_version,
        group=backfill.group,
        trigger=Trigger.BACKFILL,
        params=piece.params,
        requested_by=backfill.submitted_by,
    )
    by_key = {row.key: row.pk for row in waiting}
    claimed, held = (
        claim(terms, [[_row(row) for row in chunk] for chunk in planned]) if planned else ([], [])
    )
    _mark_active(by_key, claimed)
    _mark_skipped([row.pk for row in existing], SkipReason.EXISTS)
    _mark_skipped([by_key[row.key] for row in held], SkipReason.IN_FLIGHT)
    gone = len(existing) + len(held)
    shift_counts(
        piece.pk,
        {"waiting": -len(claimed) - gone, "active": len(claimed), "skipped": gone},
    )
    if claimed:
        nudge_dispatch()
    return len(claimed) + gone


def _partitions_for(strategy: str | int, room: int) -> int | None:
    """How many waiting partitions fill the room; None for all: a range run takes all."""
    per_run = partitions_per_run(strategy)
    if per_run is None:
        return None
    return min(room * per_run, max(_MOST_PARTITIONS_AT_ONCE, per_run))


def _next_waiting(piece: BackfillAsset, most: int | None) -> list[BackfillPartition]:
    waiting = BackfillPartition.objects.filter(backfill_asset=piece, state=State.WAITING)
    return list(waiting.order_by("rank", "position")[:most])


def _without_existing(
    backfill: Backfill, piece: BackfillAsset, waiting: Sequence[BackfillPartition]
) -> tuple[list[BackfillPartition], list[BackfillPartition]]:
    """Those to make, and those that have come to be there since the intent was written."""
    left_out = states_left_out(backfill.existing)
    if not left_out:
        return list(waiting), []
    known = AssetPartition.objects.filter(
        asset=piece.asset,
        identity=piece.asset.identity,
        key__in=[row.key for row in waiting],
        held_by__isnull=True,
        state__in=left_out,
    )
    # Its own failures come back when they are retried, whichever it was to make.
    own = Q(state=PartitionState.FAILED, last_run__group=backfill.group_id)
    there = set(known.exclude(own).values_list("key", flat=True))
    return (
        [row for row in waiting if row.key not in there],
        [row for row in waiting if row.key in there],
    )


def _plan(
    waiting: Sequence[BackfillPartition], strategy: str | int
) -> Iterator[list[BackfillPartition]]:
    """The partitions of each run.

    Runs of N do not reach over a hole, which has a position of its own.
    """
    if strategy == "range":
        yield from batches(waiting, strategy)
        return
    for _, numbered in groupby(enumerate(waiting), key=lambda pair: pair[1].position - pair[0]):
        yield from batches([row for _, row in numbered], strategy)


def _row(wanted: BackfillPartition) -> PartitionRow:
    return PartitionRow(
        wanted.key, wanted.window_start, wanted.window_end, wanted.segment, wanted.bucket
    )


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


def _mark_skipped(ids: Sequence[int], reason: SkipReason) -> None:
    if ids:
        BackfillPartition.objects.filter(pk__in=ids).update(state=State.SKIPPED, reason=reason)

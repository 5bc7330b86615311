"""Expansion of backfills: one row per partition, written in chunks that are each a transaction, so
that a crash only pauses the expansion.
"""

from collections.abc import Iterator, Sequence
from itertools import repeat

from django.db import connection, transaction
from django.db.models import F

import slicewise
from assets_app.models import SkipReason
from backfills_app.models import Backfill, BackfillAsset, BackfillPartition, BackfillState
from backfills_app.services.advance.waiting import mark_all_ready
from backfills_app.services.bookkeeping.counting import check_references, derive_states
from backfills_app.services.bookkeeping.locks import try_lock
from backfills_app.services.partitions.decisions import certain_to_stay
from backfills_app.services.partitions.stored import StoredScope, stored_scopes
from slicewise.partitions import partition_rows

State = BackfillPartition.State
CHUNK = 50_000

_COPY = """
COPY backfills_app_backfillpartition
    (backfill_asset_id, position, key, window_start, window_end, segment, bucket, state, reason,
     ready, rank)
FROM STDIN (FORMAT BINARY)
"""
_TYPES = (
    *("int8", "int4", "varchar", "timestamptz", "timestamptz", "varchar", "date"),
    *("varchar", "varchar", "bool", "int4"),
)


def expand(backfill_id: int) -> bool:
    """Write the next chunk of partition rows of one backfill, unless another transaction has locked
    the backfill; return whether more rows are left to write.
    """
    with transaction.atomic():
        if not try_lock(backfill_id):
            return False
        expanding_states = (BackfillState.CREATING, BackfillState.PAUSED)
        backfill = Backfill.objects.filter(pk=backfill_id, state__in=expanding_states).first()
        if backfill is None or not _has_unwritten_rows(backfill):
            return False
        scopes = stored_scopes(backfill)
        room = CHUNK
        for scope in scopes:
            if room and scope.row.expanded < scope.row.total:
                room -= _write_chunk(backfill, scope, room)
        is_more_left = _has_unwritten_rows(backfill)
        if not is_more_left:
            mark_all_ready(scopes)
        check_references(CHUNK - room)
        derive_states([backfill_id])
        return is_more_left


def _has_unwritten_rows(backfill: Backfill) -> bool:
    return backfill.assets.filter(expanded__lt=F("total")).exists()


def _write_chunk(backfill: Backfill, scope: StoredScope, most: int) -> int:
    """Write the next rows of an asset, ``most`` rows at most; return the number of rows written."""
    since, until = scope.row.expanded, min(scope.row.expanded + most, scope.row.total)
    chosen = scope.whole[since:until]
    existing_partitions = certain_to_stay(backfill, scope, chosen)
    skipped_ranges = scope.positions.ranges(existing_partitions)
    _copy(scope, since, chosen, skipped_ranges)
    skipped_count = sum(stop - first for first, stop in skipped_ranges)
    BackfillAsset.objects.filter(pk=scope.row.pk).update(
        expanded=until,
        waiting=F("waiting") + (until - since - skipped_count),
        skipped=F("skipped") + skipped_count,
    )
    return until - since


def _copy(
    scope: StoredScope,
    since: int,
    chosen: slicewise.PartitionSet,
    skipped_ranges: Sequence[tuple[int, int]],
) -> None:
    ready = not scope.upstream_scopes
    skip_boundaries = {boundary for first, stop in skipped_ranges for boundary in (first, stop)}
    waits, exists = ("waiting", ""), (State.SKIPPED.value, SkipReason.EXISTS.value)
    is_existing = False
    rows = partition_rows(scope.definition, chosen)
    with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        copy.set_types(_TYPES)
        for position, (row, rank) in enumerate(
            zip(rows, _ranks(scope, chosen), strict=False), since
        ):
            if position in skip_boundaries:
                is_existing = not is_existing
            copy.write_row(
                (scope.row.pk, position, *row, *(exists if is_existing else waits), ready, rank)
            )


def _ranks(scope: StoredScope, chosen: slicewise.PartitionSet) -> Iterator[int]:
    """Return, for each chosen partition, the number of the selection term that contains the
    partition.
    """
    if len(scope.terms) < 2:
        return repeat(0)
    by_key = {
        row.key: rank
        for rank, selection_term in enumerate(scope.terms)
        for row in partition_rows(scope.definition, chosen & selection_term)
    }
    return (by_key[row.key] for row in partition_rows(scope.definition, chosen))

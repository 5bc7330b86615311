"""Writes the intent: a row per partition, in chunks that are each a transaction, so that a crash
only pauses it.
"""

from collections.abc import Iterator, Sequence
from itertools import repeat

from django.db import connection, transaction
from django.db.models import F

import slicewise
from assets_app.models import SkipReason
from backfills_app.models import Backfill, BackfillAsset, BackfillPartition, BackfillState
from backfills_app.services.counting import check_references, derive_states
from backfills_app.services.judging import existing_before_its_turn
from backfills_app.services.locks import try_lock
from backfills_app.services.stored import StoredPart, stored_parts
from backfills_app.services.waiting import let_go_all
from slicewise.rows import partition_rows

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
    """Write the next chunk of one backfill; whether there is more to write."""
    with transaction.atomic():
        if not try_lock(backfill_id):
            return False
        unwritten = (BackfillState.CREATING, BackfillState.PAUSED)
        backfill = Backfill.objects.filter(pk=backfill_id, state__in=unwritten).first()
        if backfill is None or not _unwritten(backfill):
            return False
        parts = stored_parts(backfill)
        left = CHUNK
        for part in parts:
            if left and part.row.expanded < part.row.total:
                left -= _write_chunk(backfill, part, left)
        more = _unwritten(backfill)
        if not more:
            let_go_all(parts)
        check_references(CHUNK - left)
        derive_states([backfill_id])
        return more


def _unwritten(backfill: Backfill) -> bool:
    return backfill.assets.filter(expanded__lt=F("total")).exists()


def _write_chunk(backfill: Backfill, part: StoredPart, most: int) -> int:
    """Write the asset's next rows; how many."""
    since, until = part.row.expanded, min(part.row.expanded + most, part.row.total)
    chosen = part.whole[since:until]
    existing = existing_before_its_turn(backfill.existing, part, chosen)
    skipped = part.places.ranges(existing)
    _copy(part, since, chosen, skipped)
    number = sum(stop - first for first, stop in skipped)
    BackfillAsset.objects.filter(pk=part.row.pk).update(
        expanded=until,
        waiting=F("waiting") + (until - since - number),
        skipped=F("skipped") + number,
    )
    return until - since


def _copy(
    part: StoredPart,
    since: int,
    chosen: slicewise.PartitionSet,
    skipped: Sequence[tuple[int, int]],
) -> None:
    ready = not part.upstream_parts
    ends = {edge for first, stop in skipped for edge in (first, stop)}
    waits, exists = ("waiting", ""), (State.SKIPPED.value, SkipReason.EXISTS.value)
    is_there = False
    rows = partition_rows(part.definition, chosen)
    with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        copy.set_types(_TYPES)
        for position, (row, rank) in enumerate(
            zip(rows, _ranks(part, chosen), strict=False), since
        ):
            if position in ends:
                is_there = not is_there
            copy.write_row(
                (part.row.pk, position, *row, *(exists if is_there else waits), ready, rank)
            )


def _ranks(part: StoredPart, chosen: slicewise.PartitionSet) -> Iterator[int]:
    """Which term of the selection each of the partitions is in."""
    if len(part.terms) < 2:
        return repeat(0)
    by_key = {
        row.key: rank
        for rank, term in enumerate(part.terms)
        for row in partition_rows(part.definition, chosen & term)
    }
    return (by_key[row.key] for row in partition_rows(part.definition, chosen))

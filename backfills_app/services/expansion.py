"""Writes the intent: a row per partition, in chunks that are each a transaction, so that a crash
only pauses it.
"""

from collections.abc import Mapping, Sequence

from django.db import connection, transaction
from django.db.models import F

import slicewise
from assets_app.models import AssetPartition, SkipReason
from backfills_app.models import (
    Backfill,
    BackfillAsset,
    BackfillPartition,
    BackfillState,
    ExistingPolicy,
)
from backfills_app.services.counting import derive_states
from backfills_app.services.locks import try_lock
from backfills_app.services.planning import states_left_out
from slicewise.rows import PartitionRow, partition_rows
from slicewise.selection import select

State = BackfillPartition.State
CHUNK = 50_000

_COPY = """
COPY backfills_app_backfillpartition
    (backfill_asset_id, position, key, window_start, window_end, segment, bucket, state, reason,
     slice_id)
FROM STDIN
"""


def expand(backfill_id: int) -> bool:
    """Write the next chunk of one backfill; whether there is more to write."""
    with transaction.atomic():
        if not try_lock(backfill_id):
            return False
        unwritten = (BackfillState.CREATING, BackfillState.PAUSED)
        backfill = Backfill.objects.filter(pk=backfill_id, state__in=unwritten).first()
        if backfill is None:
            return False
        piece = (
            backfill.assets.filter(expanded__lt=F("total"))
            .select_related("asset__partition_definition", "producer_version")
            .first()
        )
        if piece is not None:
            _write_chunk(backfill, piece)
        derive_states([backfill_id])
        return backfill.assets.filter(expanded__lt=F("total")).exists()


def _write_chunk(backfill: Backfill, piece: BackfillAsset) -> None:
    # The rule as it was when the request was accepted: a moved bound must not move what was
    # counted.
    spec = piece.producer_version.partition_of(piece.asset.name)
    definition = slicewise.PartitionDefinition.from_json(spec or {})
    chosen = select(definition, piece.selection, longest=None)
    since, until = piece.expanded, min(piece.expanded + CHUNK, piece.total)
    rows = list(partition_rows(definition, chosen[since:until]))
    existing = _existing(backfill, piece, rows)
    _copy(piece, since, rows, existing)
    skipped = len(existing)
    BackfillAsset.objects.filter(pk=piece.pk).update(
        expanded=until,
        waiting=F("waiting") + (until - since - skipped),
        skipped=F("skipped") + skipped,
    )


def _existing(
    backfill: Backfill, piece: BackfillAsset, rows: Sequence[PartitionRow]
) -> dict[str, int]:
    """What is there already, or has failed where failures are not to be tried: slices by key.

    Looked up by window, not joined by key: without fresh statistics a join of two large tables,
    both of them just written, was planned as a loop in a loop.
    """
    left_out = states_left_out(ExistingPolicy(backfill.existing))
    if not left_out:
        return {}
    there = AssetPartition.objects.filter(
        asset=piece.asset_id,
        identity=piece.asset.identity,
        window_start__range=(rows[0].start, rows[-1].start),
        held_by__isnull=True,
        state__in=left_out,
    )
    wanted = {row.key for row in rows}
    return {key: pk for key, pk in there.values_list("key", "pk").iterator() if key in wanted}


def _copy(
    piece: BackfillAsset, since: int, rows: Sequence[PartitionRow], existing: Mapping[str, int]
) -> None:
    waiting = (State.WAITING.value, "", None)
    with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        for position, row in enumerate(rows, since):
            slice_id = existing.get(row.key)
            copy.write_row(
                (
                    piece.pk,
                    position,
                    row.key,
                    row.start,
                    row.end,
                    row.segment,
                    row.bucket,
                    *(
                        waiting
                        if slice_id is None
                        else (State.SKIPPED.value, SkipReason.EXISTS.value, slice_id)
                    ),
                )
            )

"""Writes the intent: a row per partition, in chunks that are each a transaction, so that a crash
only pauses it.
"""

from collections.abc import Sequence

from django.db import connection, transaction
from django.db.models import F

import slicewise
from backfills_app.models import (
    Backfill,
    BackfillAsset,
    BackfillPartition,
    BackfillState,
    ExistingPolicy,
)
from backfills_app.services.counting import derive_states
from backfills_app.services.locks import try_lock
from backfills_app.services.requests import states_left_out
from slicewise.rows import PartitionRow, partition_rows

CHUNK = 50_000

_COPY = """
COPY backfills_app_backfillpartition
    (backfill_asset_id, position, key, window_start, window_end, segment, bucket, state, reason)
FROM STDIN
"""

# What is there already, or has failed where failures are not to be tried, is settled at once.
_SKIP_EXISTING = """
WITH skipped AS (
    UPDATE backfills_app_backfillpartition AS wanted
    SET state = 'skipped', reason = 'exists', slice_id = slice.id
    FROM assets_app_assetpartition AS slice
    WHERE wanted.backfill_asset_id = %(backfill_asset)s
      AND wanted.position >= %(since)s AND wanted.position < %(until)s
      AND slice.asset_id = %(asset)s AND slice.identity = %(identity)s
      AND slice.key = wanted.key AND slice.held_by_id IS NULL
      AND slice.state = ANY(%(left_out)s)
    RETURNING 1
)
SELECT count(*) FROM skipped
"""


def expand(backfill_id: int) -> bool:
    """Write the next chunk of one backfill; whether there is more to write."""
    with transaction.atomic():
        if not try_lock(backfill_id):
            return False
        backfill = Backfill.objects.filter(pk=backfill_id, state=BackfillState.CREATING).first()
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
    chosen = definition.select(backfill.logical_dates)
    since, until = piece.expanded, min(piece.expanded + CHUNK, piece.total)
    _copy(piece, since, list(partition_rows(definition, chosen[since:until])))
    skipped = _skip_existing(backfill, piece, since, until)
    BackfillAsset.objects.filter(pk=piece.pk).update(
        expanded=until,
        waiting=F("waiting") + (until - since - skipped),
        skipped=F("skipped") + skipped,
    )


def _copy(piece: BackfillAsset, since: int, rows: Sequence[PartitionRow]) -> None:
    with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        for position, row in enumerate(rows, since):
            copy.write_row(
                (
                    piece.pk,
                    position,
                    row.key,
                    row.start,
                    row.end,
                    row.segment,
                    row.bucket,
                    BackfillPartition.State.WAITING.value,
                    "",
                )
            )


def _skip_existing(backfill: Backfill, piece: BackfillAsset, since: int, until: int) -> int:
    left_out = states_left_out(ExistingPolicy(backfill.existing))
    if not left_out:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(
            _SKIP_EXISTING,
            {
                "backfill_asset": piece.pk,
                "asset": piece.asset_id,
                "identity": piece.asset.identity,
                "since": since,
                "until": until,
                "left_out": [state.value for state in left_out],
            },
        )
        return int(cursor.fetchone()[0])

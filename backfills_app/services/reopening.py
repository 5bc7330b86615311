"""Carries out retries of backfills: puts partitions that were not made back to waiting."""

from collections.abc import Sequence

from django.db import connection

from assets_app.execution.requests import checked_params, require_producer
from assets_app.models import ProducerVersion, SkipReason
from backfills_app.models import Backfill, BackfillAsset, PendingControl
from backfills_app.services.counting import shift_counts
from backfills_app.services.freezing import (
    freeze_cuts_in_force,
    given_to,
    require_order,
    require_same_cut,
)
from backfills_app.services.waiting import look_again
from backfills_app.services.withdrawing import take_back_waiting

# Skipped for want of something upstream, or of the partition before, which may be there by now, or
# is made by this retry.
RETRIED_REASONS = (
    SkipReason.UPSTREAM_FAILED,
    SkipReason.UPSTREAM_MISSING,
    SkipReason.UPSTREAM_NONEXISTENT,
    SkipReason.WAIT_TIMEOUT,
)
_AGAIN = """
WITH back AS MATERIALIZED (
    SELECT id, backfill_asset_id, state FROM backfills_app_backfillpartition
    WHERE backfill_asset_id = ANY(%s)
      AND (state = 'failed' OR %s AND state = 'canceled'
           OR reason = ANY(%s))
    ORDER BY id FOR UPDATE
), again AS (
    UPDATE backfills_app_backfillpartition AS wanted
    SET state = 'waiting', reason = '', run_id = NULL
    FROM back WHERE wanted.id = back.id
)
SELECT backfill_asset_id, state, count(*) FROM back GROUP BY 1, 2 ORDER BY 1, 2
"""


def retry_pending(backfill: Backfill, asked: Sequence[PendingControl]) -> None:
    """Put partitions that were not made back to waiting, under the backfill's lock."""
    take_back_waiting(backfill)
    pieces = list(backfill.assets.select_related("asset", "producer_version").order_by("pk"))
    again = _wait_again(pieces, is_canceled_too=any(row.is_canceled_too for row in asked))
    if any(row.is_newest_code for row in asked):
        renewed = [piece for piece in pieces if piece.pk in again]
        renew_code(renewed, backfill.order)
        freeze_cuts_in_force(backfill.group, renewed)
    look_again(backfill)
    PendingControl.objects.filter(pk__in=[row.pk for row in asked]).delete()


def _wait_again(pieces: Sequence[BackfillAsset], *, is_canceled_too: bool) -> dict[int, int]:
    """Put the partitions back to waiting; return their number for each asset that has some."""
    with connection.cursor() as cursor:
        cursor.execute(
            _AGAIN, [[piece.pk for piece in pieces], is_canceled_too, list(RETRIED_REASONS)]
        )
        rows = cursor.fetchall()
    changes: dict[int, dict[str, int]] = {}
    for piece_id, state, number in rows:
        change = changes.setdefault(piece_id, {"waiting": 0})
        change["waiting"] += number
        change[state] = -number
    for piece_id, change in changes.items():
        shift_counts(piece_id, change)
    return {piece_id: change["waiting"] for piece_id, change in changes.items()}


def newest_version(piece: BackfillAsset, order: str) -> ProducerVersion:
    """Return the code in force now for an asset of a backfill.

    Raises InvalidRequest where it cuts the asset otherwise, forbids the order or refuses params.
    """
    newest = require_producer(piece.asset)
    if newest.pk != piece.producer_version_id:
        require_same_cut(piece.asset, newest)
        require_order(order, [(piece.asset, newest)], field="code")
        checked_params(newest, given_to(piece))
    return newest


def renew_code(pieces: Sequence[BackfillAsset], order: str) -> None:
    """Freeze the code in force now for these assets."""
    for piece in pieces:
        newest = newest_version(piece, order)
        if newest.pk != piece.producer_version_id:
            piece.params = checked_params(newest, given_to(piece))
            piece.producer_version = newest
            piece.save(update_fields=["params", "producer_version"])

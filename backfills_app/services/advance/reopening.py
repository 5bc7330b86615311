"""Retries of backfills as the bulk worker carries them out: partitions go back to waiting."""

from collections.abc import Sequence

from django.db import connection

from assets_app.execution.request.requests import checked_params, require_producer
from assets_app.models import ProducerVersion
from backfills_app.models import Backfill, BackfillAsset, PendingControl
from backfills_app.queries.skips import RETRIED_REASONS
from backfills_app.services.advance.waiting import recheck
from backfills_app.services.advance.withdrawing import withdraw_waiting_runs
from backfills_app.services.bookkeeping.counting import shift_counts
from backfills_app.services.partitions.frozen_assets import freeze_definitions_in_force
from backfills_app.services.request.checking import require_order
from backfills_app.services.request.frozen_request import (
    requested_params,
    require_same_partitioning,
)
from partitions_app.models import PartitionDefinition

_RETURN_TO_WAITING = """
WITH retried AS MATERIALIZED (
    SELECT id, backfill_asset_id, state FROM backfills_app_backfillpartition
    WHERE backfill_asset_id = ANY(%s)
      AND (state = 'failed' OR %s AND state = 'canceled'
           OR reason = ANY(%s))
    ORDER BY id FOR UPDATE
), updated AS (
    UPDATE backfills_app_backfillpartition AS backfill_partition
    SET state = 'waiting', reason = '', run_id = NULL
    FROM retried WHERE backfill_partition.id = retried.id
)
SELECT backfill_asset_id, state, count(*) FROM retried GROUP BY 1, 2 ORDER BY 1, 2
"""


def retry_pending(backfill: Backfill, requests: Sequence[PendingControl]) -> None:
    """Set partitions that were not materialized back to waiting, under the backfill's lock."""
    withdraw_waiting_runs(backfill)
    asset_rows = list(backfill.assets.select_related("asset", "producer_version").order_by("pk"))
    # The requests with the newest code come first: these take the failed partitions, which another
    # request would retry with the code of the backfill.
    for is_newest_code in (True, False):
        own_requests = [row for row in requests if row.is_newest_code == is_newest_code]
        if not own_requests:
            continue
        waiting_counts = _wait_again(
            asset_rows, is_canceled_too=any(row.is_canceled_too for row in own_requests)
        )
        if is_newest_code:
            renewed = [asset_row for asset_row in asset_rows if asset_row.pk in waiting_counts]
            renew_code(renewed, backfill.order)
            freeze_definitions_in_force(backfill.group, renewed)
    recheck(backfill)
    PendingControl.objects.filter(pk__in=[row.pk for row in requests]).delete()


def _wait_again(asset_rows: Sequence[BackfillAsset], *, is_canceled_too: bool) -> dict[int, int]:
    """Set the partitions back to waiting; return the number for each asset with such partitions."""
    with connection.cursor() as cursor:
        cursor.execute(
            _RETURN_TO_WAITING,
            [[asset_row.pk for asset_row in asset_rows], is_canceled_too, list(RETRIED_REASONS)],
        )
        rows = cursor.fetchall()
    changes: dict[int, dict[str, int]] = {}
    for asset_row_id, state, number in rows:
        change = changes.setdefault(asset_row_id, {"waiting": 0})
        change["waiting"] += number
        change[state] = -number
    for asset_row_id, change in changes.items():
        shift_counts(asset_row_id, change)
    return {asset_row_id: change["waiting"] for asset_row_id, change in changes.items()}


def newest_version(asset_row: BackfillAsset, order: str) -> ProducerVersion:
    """Return the code in force now for an asset of a backfill.

    Raises InvalidRequest where that code partitions the asset differently, forbids the order or
    refuses params.
    """
    newest = require_producer(asset_row.asset)
    if newest.pk != asset_row.producer_version_id:
        asset = asset_row.asset
        spec = newest.spec.partition_of(asset.name)
        definition = PartitionDefinition.rule_of(spec, in_force=asset.partition_definition)
        require_same_partitioning(asset, definition)
        require_order(order, [(asset_row.asset, newest)], field="code")
        checked_params(newest, requested_params(asset_row))
    return newest


def renew_code(asset_rows: Sequence[BackfillAsset], order: str) -> None:
    """Freeze the code in force now for these assets, with its params and its strategy as far as the
    request set no others.
    """
    for asset_row in asset_rows:
        newest = newest_version(asset_row, order)
        if newest.pk != asset_row.producer_version_id:
            asset_row.params = checked_params(newest, requested_params(asset_row))
            if asset_row.strategy == asset_row.producer_version.spec.strategy:
                asset_row.strategy = newest.spec.strategy
            asset_row.producer_version = newest
            asset_row.save(update_fields=["params", "producer_version", "strategy"])

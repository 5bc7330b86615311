"""The watch over freshness: partitions that are not there in time are late, and then overdue."""

import logging
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from django.db import connection, transaction

from assets_app.catalogue.freshness_watches import earliest_mark, next_late_at
from assets_app.models import FreshnessWatch, LatePartition
from assets_app.signals import partitions_overdue
from slicewise.declaring import Freshness
from slicewise.partitions import PartitionRow, ended_between, partition_rows

log = logging.getLogger(__name__)

_WATCHES_AT_ONCE = 500
_ROWS_AT_ONCE = 5_000
_ANNOUNCED_AT_ONCE = 5_000
_RETRY_AFTER = timedelta(minutes=1)

# Partitions of these keys that are not there.
_NOTE = """
INSERT INTO assets_app_latepartition
    (asset_id, identity, key, window_start, window_end, late_at, overdue_at)
SELECT ended.asset_id, ended.identity, ended.key, ended.window_start, ended.window_end,
       ended.window_end + ended.late, ended.window_end + ended.overdue
FROM unnest(
    %(assets)s::bigint[], %(identities)s::text[], %(keys)s::text[], %(starts)s::timestamptz[],
    %(ends)s::timestamptz[], %(late)s::interval[], %(overdue)s::interval[]
) AS ended(asset_id, identity, key, window_start, window_end, late, overdue)
WHERE NOT EXISTS (
    SELECT FROM assets_app_assetpartition AS partition
    WHERE partition.asset_id = ended.asset_id AND partition.identity = ended.identity COLLATE "C"
      AND partition.key = ended.key COLLATE "C" AND partition.version > 0
)
ORDER BY ended.asset_id, ended.identity COLLATE "C", ended.key COLLATE "C"
ON CONFLICT DO NOTHING
"""
_FORGET_COME = """
DELETE FROM assets_app_latepartition AS late USING assets_app_assetpartition AS partition
WHERE partition.asset_id = late.asset_id AND partition.identity = late.identity
    AND partition.key = late.key
  AND partition.version > 0
"""
_ANNOUNCE = """
UPDATE assets_app_latepartition SET announced_at = %(now)s
WHERE id IN (
    SELECT id FROM assets_app_latepartition
    WHERE announced_at IS NULL AND overdue_at <= %(now)s
    ORDER BY overdue_at LIMIT %(most)s FOR UPDATE SKIP LOCKED
)
RETURNING id
"""


def watch_freshness(now: datetime) -> int:
    """Note the late partitions, forget the partitions that have come, and announce each overdue
    partition once; return the number of announced partitions.

    Without watched assets the call costs one look at an index, and one at an empty table.
    """
    while _note_late(now):
        pass
    if not LatePartition.objects.exists():
        return 0
    with connection.cursor() as cursor:
        cursor.execute(_FORGET_COME)
    announced = 0
    while count := _announce(now):
        announced += count
    return announced


@transaction.atomic
def _note_late(now: datetime) -> int:
    """Look at a batch of watches whose next window is late; return the size of the batch."""
    due = FreshnessWatch.objects.filter(next_at__lte=now).order_by("next_at", "pk")
    due = due.select_for_update(of=("self",), skip_locked=True)
    watches = list(due.select_related("asset__partition_definition")[:_WATCHES_AT_ONCE])
    _insert(row for watch in watches for row in _ended_of(watch, now))
    FreshnessWatch.objects.bulk_update(watches, ["watched_until", "next_at"])
    return len(watches)


def _ended_of(
    watch: FreshnessWatch, now: datetime
) -> Iterator[tuple[FreshnessWatch, PartitionRow]]:
    """Yield the partitions of windows that a watch has not looked at, and move the watch on. A
    definition that cannot be read keeps no other watch from a turn.
    """
    asset = watch.asset
    try:
        definition = asset.definition
        if definition is None or asset.identity != watch.identity:
            watch.next_at = None
            return
        until = now - earliest_mark(watch.freshness)
        rows = list(
            partition_rows(definition, ended_between(definition, watch.watched_until, until))
        )
        watch.watched_until = until
        watch.next_at = next_late_at(asset, watch)
    except Exception:
        log.exception("freshness cannot be watched", extra={"asset": asset.name})
        watch.next_at = now + _RETRY_AFTER
        return
    yield from ((watch, row) for row in rows)


def _insert(ended: Iterable[tuple[FreshnessWatch, PartitionRow]]) -> None:
    remaining = iter(ended)
    while rows := list(islice(remaining, _ROWS_AT_ONCE)):
        values: dict[str, Any] = {
            "assets": [watch.asset_id for watch, _ in rows],
            "identities": [watch.identity for watch, _ in rows],
            "keys": [row.key for _, row in rows],
            "starts": [row.start for _, row in rows],
            "ends": [row.end for _, row in rows],
            "late": [earliest_mark(watch.freshness) for watch, _ in rows],
            "overdue": [Freshness.from_json(watch.freshness).within for watch, _ in rows],
        }
        with connection.cursor() as cursor:
            cursor.execute(_NOTE, values)


@transaction.atomic
def _announce(now: datetime) -> int:
    """Announce a batch of overdue partitions; return the size of the batch.

    Marks and events are written in one transaction.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ANNOUNCE, {"now": now, "most": _ANNOUNCED_AT_ONCE})
        ids = [pk for (pk,) in cursor.fetchall()]
    if ids:
        partitions_overdue.send(sender=None, late_ids=ids)
    return len(ids)

"""The rows of the partitions of one admission: active in a run, or skipped for a reason."""

from collections.abc import Mapping, Sequence

from django.db import connection

from assets_app.execution.queue.claims import ClaimedPartition
from assets_app.models import SkipReason
from backfills_app.services.advance.batching import WaitingRow
from backfills_app.services.partitions.decisions import runs_holding
from backfills_app.services.partitions.stored import StoredScope


def mark_active(by_key: dict[str, int], claimed: Sequence[ClaimedPartition]) -> None:
    """Mark partitions as active in the runs that claimed the partitions."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE backfills_app_backfillpartition AS backfill_partition
            SET state = 'active', partition_id = claimed.partition_id, run_id = claimed.run_id
            FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS claimed(id, partition_id,
                run_id)
            WHERE backfill_partition.id = claimed.id
            """,
            [
                [by_key[partition.row.key] for partition in claimed],
                [partition.partition_id for partition in claimed],
                [partition.run_id for partition in claimed],
            ],
        )


def holders_of(
    scope: StoredScope, rows: Mapping[int, WaitingRow], reasons: Mapping[int, SkipReason]
) -> dict[int, int]:
    """Return the runs that materialize the partitions in flight, by the positions of the
    partitions.
    """
    in_flight = {
        rows[position].partition.key: position
        for position, reason in reasons.items()
        if reason == SkipReason.IN_FLIGHT
    }
    return {in_flight[key]: run_id for key, run_id in runs_holding(scope, list(in_flight)).items()}


def mark_skipped(
    rows: Mapping[int, WaitingRow], reasons: Mapping[int, SkipReason], holders: Mapping[int, int]
) -> None:
    """Mark partitions as skipped; a partition in flight with the run that materializes it, since
    downstream partitions wait for the end of that run.
    """
    if not reasons:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE backfills_app_backfillpartition AS backfill_partition
            SET state = 'skipped', reason = skipped.reason, run_id = skipped.run_id
            FROM unnest(%s::bigint[], %s::text[], %s::bigint[]) AS skipped(id, reason, run_id)
            WHERE backfill_partition.id = skipped.id
            """,
            [
                [rows[position].pk for position in reasons],
                [reason.value for reason in reasons.values()],
                [holders.get(position) for position in reasons],
            ],
        )

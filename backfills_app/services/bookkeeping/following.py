"""Updates of backfills after the end of runs that materialize their partitions."""

from collections.abc import Collection, Sequence

from assets_app.queries.prepared_statements import prepared_cursor
from backfills_app.services.bookkeeping.counting import (
    check_references,
    derive_states,
    shift_counts,
)
from backfills_app.services.bookkeeping.messages import nudge_advance

# A subquery looks into an index once for each partition, where a join depends on statistics. These
# may be older than the end of the first of many runs: such a join read the list of runs for each
# partition.
_FOLLOW = """
WITH active AS MATERIALIZED (
    SELECT backfill_partition.id, backfill_partition.run_id, (
        SELECT run_partition.state FROM assets_app_runpartition AS run_partition
        WHERE run_partition.run_id = backfill_partition.run_id
          AND run_partition.partition_id = backfill_partition.partition_id
    ) AS state
    FROM backfills_app_backfillpartition AS backfill_partition
    WHERE backfill_partition.run_id = ANY(%(runs)s::bigint[])
      AND backfill_partition.state = 'active'
), ended AS (
    UPDATE backfills_app_backfillpartition AS backfill_partition
    SET state = active.state,
        reason = CASE WHEN active.state = 'skipped' THEN (
            SELECT run.skip_reason FROM assets_app_run AS run WHERE run.id = active.run_id
        ) ELSE backfill_partition.reason END
    FROM active
    WHERE backfill_partition.id = active.id AND backfill_partition.state = 'active'
      AND active.state <> 'pending'
    RETURNING backfill_partition.backfill_asset_id, backfill_partition.state
)
SELECT ended.backfill_asset_id, backfill_asset.backfill_id, ended.state, count(*)
FROM ended
JOIN backfills_app_backfillasset AS backfill_asset
    ON backfill_asset.id = ended.backfill_asset_id
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""

# Runs that wait for their next attempt are not counted: such runs could not start now, and no index
# by group has them.
_SHORT = """
SELECT EXISTS (
    SELECT 1 FROM backfills_app_backfill AS backfill
    JOIN backfills_app_backfillasset AS backfill_asset ON backfill_asset.backfill_id = backfill.id
    WHERE backfill.id = ANY(%(backfills)s::bigint[]) AND backfill_asset.waiting > 0
      AND backfill.max_active_runs > (
        SELECT count(*) FROM assets_app_run AS run
        WHERE run.group_id = backfill.group_id AND run.queue = 'backfill' AND run.state = 'queued'
          AND run.not_before IS NULL
    )
)
"""


# Only for backfills with downstream assets that are unfinished; also for runs of other requests
# that the backfill waits for.
_NOTE = """
INSERT INTO backfills_app_endedrun (backfill_id, run_id)
SELECT DISTINCT backfill_asset.backfill_id, backfill_partition.run_id
FROM backfills_app_backfillpartition AS backfill_partition
JOIN backfills_app_backfillasset AS backfill_asset
    ON backfill_asset.id = backfill_partition.backfill_asset_id
WHERE backfill_partition.run_id = ANY(%(runs)s::bigint[]) AND EXISTS (
    SELECT FROM backfills_app_backfillasset AS later_asset
    WHERE later_asset.backfill_id = backfill_asset.backfill_id
        AND later_asset.position > backfill_asset.position
      AND (later_asset.waiting > 0 OR later_asset.expanded < later_asset.total)
)
"""


def follow(run_ids: Sequence[int]) -> None:
    """Update the partitions, counts and states of backfills, in the transaction that
    ends the runs.
    """
    with prepared_cursor(len(run_ids)) as cursor:
        cursor.execute(_FOLLOW, {"runs": list(run_ids)})
        ended = cursor.fetchall()
        cursor.execute(_NOTE, {"runs": list(run_ids)})
        if cursor.rowcount:
            nudge_advance()
    if not ended:
        return
    check_references(sum(number for *_, number in ended))
    changes: dict[int, dict[str, int]] = {}
    for asset_row_id, _backfill_id, state, number in ended:
        change = changes.setdefault(asset_row_id, {"active": 0})
        change["active"] -= number
        change[state] = number
    for asset_row_id, change in sorted(changes.items()):
        shift_counts(asset_row_id, change)
    backfill_ids = {backfill_id for _, backfill_id, _, _ in ended}
    derive_states(backfill_ids)
    if _is_short_of_runs(backfill_ids):
        nudge_advance()


def _is_short_of_runs(backfill_ids: Collection[int]) -> bool:
    """Return whether a backfill has waiting partitions, and fewer runs ready than may be active.

    Otherwise the next beat is soon enough.
    """
    with prepared_cursor(len(backfill_ids)) as cursor:
        cursor.execute(_SHORT, {"backfills": list(backfill_ids)})
        return bool(cursor.fetchone()[0])

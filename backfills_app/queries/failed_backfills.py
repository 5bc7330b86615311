"""Backfills that ended with failures, for the overview."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from assets_app.models import SKIPS_WITHOUT_FAILURE, SkipReason
from backfills_app.models import FAILED_STATES, Backfill
from backfills_app.queries.counts import Counts, counts_of

_MOST_EXAMINED = 100
# Of each backfill, so many partitions without data are looked up. A backfill with more counts as
# unresolved, as does a backfill with an error: it was given up, and has canceled partitions.
_MOST_PARTITIONS = 100
# A failure is resolved once another run has materialized the partition since the backfill was
# submitted, or holds the partition now. The assets are compared by >= and <=, and the rows are
# ordered by the compared column, so that the planner reads an index up to the limit: of partitions
# just written the planner has no statistics, takes them to be few, and would read all.
_UNRESOLVED = """
SELECT backfill.id
FROM (
    SELECT id, error, submitted_at, run_end_date FROM backfills_app_backfill
    WHERE state IN ('failed', 'partially_failed') AND NOT deleted AND run_end_date >= %(since)s
    ORDER BY run_end_date DESC LIMIT %(examined)s
) AS backfill
WHERE backfill.error <> '' OR EXISTS (
    SELECT FROM (
        SELECT row_number() OVER () AS number, backfill_asset.asset_id, failure.key,
            coalesce(definition.identity, 'whole') AS identity
        FROM backfills_app_backfillasset AS backfill_asset
        JOIN assets_app_asset AS asset ON asset.id = backfill_asset.asset_id AND asset.active
        LEFT JOIN partitions_app_partitiondefinition AS definition
            ON definition.id = asset.partition_definition_id
        CROSS JOIN LATERAL (
            (
                SELECT key FROM backfills_app_backfillpartition
                WHERE backfill_asset_id >= backfill_asset.id
                    AND backfill_asset_id <= backfill_asset.id AND state = 'failed'
                ORDER BY backfill_asset_id, position LIMIT %(partitions)s + 1
            ) UNION ALL (
                SELECT key FROM backfills_app_backfillpartition
                WHERE backfill_asset_id >= backfill_asset.id
                    AND backfill_asset_id <= backfill_asset.id AND state = 'skipped'
                    AND reason = ANY(%(reasons)s)
                ORDER BY backfill_asset_id LIMIT %(partitions)s + 1
            )
        ) AS failure
        WHERE backfill_asset.backfill_id = backfill.id
            AND (backfill_asset.failed > 0 OR backfill_asset.skipped > 0)
        LIMIT %(partitions)s + 1
    ) AS failure
    WHERE failure.number > %(partitions)s OR NOT coalesce((
        SELECT partition.held_by_id IS NOT NULL OR (
            partition.state = 'materialized' AND partition.materialized_at > backfill.submitted_at
        )
        FROM assets_app_assetpartition AS partition
        WHERE partition.asset_id = failure.asset_id AND partition.identity = failure.identity
            AND partition.key = failure.key
    ), false)
)
ORDER BY backfill.run_end_date DESC, backfill.id DESC
"""


class FailedBackfill(NamedTuple):
    """A backfill that ended as failed or partially failed, with the counts of its partitions. The
    error may contain secrets; it is empty for a backfill that was not given up.
    """

    pk: int
    name: str
    state: str
    counts: Counts
    error: str
    ended_at: datetime


class FailedBackfills(NamedTuple):
    """The backfills that failed last, and the number of further failed backfills."""

    latest: Sequence[FailedBackfill]
    more_count: int


def failed_backfills(since: datetime, most: int) -> FailedBackfills:
    """Return the backfills that failed since the instant and whose failures are unresolved, the
    latest first: three statements, one without such backfills.

    Only the latest backfills are examined. Assets that no file declares do not count.
    """
    ids = _unresolved_ids(since)
    if not ids:
        return FailedBackfills((), 0)
    # A backfill may have been retried meanwhile.
    rows = Backfill.objects.filter(pk__in=ids[:most], state__in=FAILED_STATES)
    latest = rows.prefetch_related("assets").order_by("-run_end_date", "-pk")
    return FailedBackfills(
        [
            FailedBackfill(
                row.pk,
                row.name,
                row.state,
                counts_of(row.assets.all()),
                row.error,
                row.run_end_date,
            )
            for row in latest
            if row.run_end_date is not None
        ],
        max(len(ids) - most, 0),
    )


def _unresolved_ids(since: datetime) -> list[int]:
    reasons = [reason.value for reason in SkipReason if reason not in SKIPS_WITHOUT_FAILURE]
    values: dict[str, Any] = {
        "since": since,
        "examined": _MOST_EXAMINED,
        "partitions": _MOST_PARTITIONS,
        "reasons": reasons,
    }
    with connection.cursor() as cursor:
        cursor.execute(_UNRESOLVED, values)
        return [pk for (pk,) in cursor.fetchall()]

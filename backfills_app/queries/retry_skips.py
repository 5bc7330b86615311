"""The partitions of a backfill that a retry requeues and then skips, because another run has
materialized the partition since, or materializes the partition now.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from backfills_app.models import Backfill, ExistingPolicy
from backfills_app.queries.skips import RETRIED_REASONS

MOST_EXAMINED = 10_000
"""The number of failed, of skipped and of canceled partitions that are examined: a million rows
must not keep a page waiting."""

# One index has the failed partitions of an asset, another one the skipped partitions by reason,
# a third one the canceled partitions. A retry may skip more partitions than are counted: an
# unpartitioned asset has no definition, and is skipped or not by the runs upstream of the asset; a
# partition may be held through another outlet of the function, by the code of the backfill or the
# newest code. The function is joined outside of EXISTS: within, a condition on two tables would
# have all versions read.
_COUNTED = """
WITH backfill_asset AS MATERIALIZED (
    SELECT backfill_asset.id, backfill_asset.asset_id, definition.identity,
        definition.id IS NULL OR EXISTS (
            SELECT FROM assets_app_producerversion AS version
            WHERE version.id IN (backfill_asset.producer_version_id, producer.current_version_id)
                AND CASE jsonb_typeof(version.definition -> 'outlets')
                    WHEN 'array' THEN jsonb_array_length(version.definition -> 'outlets') > 1
                    ELSE false END
        ) AS skips_more
    FROM backfills_app_backfillasset AS backfill_asset
    JOIN assets_app_asset AS asset ON asset.id = backfill_asset.asset_id
    LEFT JOIN assets_app_producer AS producer ON producer.id = asset.producer_id
    LEFT JOIN partitions_app_partitiondefinition AS definition
        ON definition.id = asset.partition_definition_id
    WHERE backfill_asset.backfill_id = %(backfill)s
), retried AS MATERIALIZED (
    (SELECT false AS is_canceled, backfill_asset.asset_id, failed.key
    FROM backfill_asset, LATERAL (
        SELECT key FROM backfills_app_backfillpartition
        WHERE backfill_asset_id = backfill_asset.id AND state = 'failed'
        ORDER BY position LIMIT %(most)s
    ) AS failed LIMIT %(most)s)
    UNION ALL
    (SELECT false, backfill_asset.asset_id, skipped.key
    FROM backfill_asset, unnest(%(reasons)s::text[]) AS reason(name), LATERAL (
        SELECT key FROM backfills_app_backfillpartition
        WHERE backfill_asset_id = backfill_asset.id AND state = 'skipped'
          AND backfills_app_backfillpartition.reason = reason.name
        ORDER BY position LIMIT %(most)s
    ) AS skipped LIMIT %(most)s)
    UNION ALL
    (SELECT true, backfill_asset.asset_id, canceled.key
    FROM backfill_asset, LATERAL (
        SELECT key FROM backfills_app_backfillpartition
        WHERE backfill_asset_id = backfill_asset.id AND lower(state) = 'canceled'
        ORDER BY position LIMIT %(most)s
    ) AS canceled LIMIT %(most)s)
)
SELECT retried.is_canceled, count(*),
    count(*) FILTER (WHERE partition.held_by_id IS NULL AND partition.state = 'materialized'),
    count(*) FILTER (WHERE partition.held_by_id IS NOT NULL),
    count(*) FILTER (
        WHERE partition.held_by_id IS NULL AND partition.state = 'failed' AND NOT EXISTS (
            SELECT FROM assets_app_run AS last
            WHERE last.id = partition.last_run_id AND last.group_id = %(group)s
        )
    ),
    bool_or(backfill_asset.skips_more)
FROM retried
JOIN backfill_asset ON backfill_asset.asset_id = retried.asset_id
LEFT JOIN assets_app_assetpartition AS partition
    ON partition.asset_id = retried.asset_id AND partition.identity = backfill_asset.identity
        AND partition.key = retried.key
GROUP BY 1
"""


@dataclass(frozen=True, slots=True)
class RetrySkips:
    """The number of ``examined`` partitions, of which so many are materialized by now, are held by
    other runs, or failed in other runs, and so are skipped. A retry runs materialized partitions
    that are stale or from older code if ``remakes_stale``, and may skip further partitions if
    ``skips_more``.
    """

    examined: int = 0
    materialized: int = 0
    held: int = 0
    failed_elsewhere: int = 0
    remakes_stale: bool = False
    skips_more: bool = False

    def text(self, number: int) -> str:
        """Return the numbers in sentences, for a retry of so many partitions; empty where a retry
        skips none of the examined partitions.
        """
        unless = " unless stale or from older code" if self.remakes_stale else ""
        numbers = (
            (self.materialized, "{verb} materialized by now", unless),
            (self.held, "{verb} in progress in another run", ""),
            (self.failed_elsewhere, "failed in another run since", ""),
        )
        is_cut = number > self.examined
        sentences = [_sentence(*counted, is_cut=is_cut) for counted in numbers if counted[0]]
        has_rest = not (is_cut or self.skips_more or (self.remakes_stale and self.materialized))
        if not sentences or not has_rest:
            return " ".join(sentences)
        remaining_count = number - self.materialized - self.held - self.failed_elsewhere
        verb = "is" if remaining_count == 1 else "are"
        return " ".join([*sentences, f"{remaining_count:,} {verb} left to run."])


def _sentence(number: int, status: str, unless: str, *, is_cut: bool) -> str:
    verb = "is" if number == 1 else "are"
    text = f"{number:,} of these {status.format(verb=verb)}, and {verb} skipped{unless}."
    return f"At least {text}" if is_cut else text


def retry_skips(backfill: Backfill) -> tuple[RetrySkips, RetrySkips]:
    """Return the numbers for the partitions that a retry takes, and for canceled partitions: one
    statement.
    """
    values: dict[str, Any] = {
        "backfill": backfill.pk, "group": backfill.group_id, "reasons": list(RETRIED_REASONS),
        "most": MOST_EXAMINED,
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED, values)
        rows = {is_canceled: numbers for is_canceled, *numbers in cursor.fetchall()}
    return _of_policy(backfill, rows.get(False)), _of_policy(backfill, rows.get(True))


def _of_policy(backfill: Backfill, numbers: Sequence[int] | None) -> RetrySkips:
    """Return the numbers of the partitions that the policy of the backfill skips."""
    examined, materialized, held_count, failed, skips_more = numbers or (0, 0, 0, 0, False)
    policy = backfill.existing
    return RetrySkips(
        examined,
        0 if policy == ExistingPolicy.ALL else materialized,
        held_count,
        failed if policy == ExistingPolicy.MISSING else 0,
        policy == ExistingPolicy.STALE,
        bool(skips_more),
    )

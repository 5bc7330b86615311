"""Late inputs of partitions: upstream assets that were missing or old when a partition was made."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from assets_app.models import Asset
from partitions_app.labels import label_of

_COME_SINCE = """
SELECT partition.asset_id, partition.key, partition.window_start, partition.segment, partition.id
FROM jsonb_array_elements_text(late.keys) AS missing(key)
JOIN assets_app_asset AS upstream ON upstream.id = late.upstream_id
LEFT JOIN partitions_app_partitiondefinition AS definition
    ON definition.id = upstream.partition_definition_id
JOIN assets_app_assetpartition AS partition
    ON partition.asset_id = upstream.id
        AND partition.identity = coalesce(definition.identity, 'whole')
   AND partition.key = missing.key COLLATE "C" AND partition.version > 0
WHERE NOT EXISTS (
    SELECT FROM assets_app_attemptinput AS read
    WHERE read.attempt_id = {attempt} AND read.partition_id = partition.id
)
"""

# Without the inputs that came between the claim and the start of the run, which the run has read:
# all missing partitions, or a version that is newer than the old one.
_LATE = """
SELECT own.key, upstream.name, late.upstream_id, late.reason, late.effect, late.missing, late.keys,
       late.newest_at
FROM assets_app_assetpartition AS own
JOIN assets_app_materialization AS own_materialization
    ON own_materialization.partition_id = own.id AND own_materialization.version = own.version
JOIN assets_app_lateinput AS late ON late.run_id = own_materialization.run_id AND late.key = own.key
JOIN assets_app_asset AS upstream ON upstream.id = late.upstream_id
WHERE own.asset_id = %(asset)s AND own.identity = %(identity)s
  AND own.key = ANY(%(keys)s::text[]) AND own.version > 0
  AND NOT (late.reason = 'missing' AND late.missing > 0
           AND jsonb_array_length(late.keys) = late.missing AND late.missing = (
      SELECT count(*) FROM assets_app_attemptinput AS read
      JOIN assets_app_assetpartition AS partition ON partition.id = read.partition_id
      WHERE read.attempt_id = own_materialization.attempt_id
        AND partition.asset_id = late.upstream_id
        AND late.keys ? partition.key
  ))
  AND NOT (late.reason = 'old' AND EXISTS (
      SELECT FROM assets_app_attemptinput AS read
      JOIN assets_app_assetpartition AS partition ON partition.id = read.partition_id
      JOIN assets_app_materialization AS materialization
          ON materialization.partition_id = partition.id AND materialization.version = read.version
      WHERE read.attempt_id = own_materialization.attempt_id
        AND partition.asset_id = late.upstream_id
        AND late.newest_at < CASE
            -- A write that was reported late has the earlier time of the write.
            WHEN partition.version = read.version THEN partition.materialized_at
            ELSE materialization.created_at
        END
  ))
ORDER BY own.key, upstream.name
"""
_MOST_NAMED = 3


def come_since(attempt: str) -> str:
    """Return the statement for the upstream partitions that were missing when a run was queued,
    have come since, and were not read by the attempt. The statement around names the row of
    `LateInput` ``late``, and the id of the attempt.
    """
    return _COME_SINCE.format(attempt=attempt)


@dataclass(frozen=True, slots=True)
class LateInputFact:
    """An upstream asset that was late for the present version of a partition."""

    asset: Asset
    reason: str
    effect: str
    # The number of missing partitions, and the first keys.
    missing: int
    keys: Sequence[str]
    # When the newest needed partition had been materialized.
    newest_at: datetime | None

    @property
    def labels(self) -> list[str]:
        """The first missing partitions, as people read the names."""
        definition = self.asset.definition
        return [label_of(definition, key) for key in self.keys[:_MOST_NAMED] if key]

    @property
    def more(self) -> int:
        """The number of missing partitions beside the named ones."""
        return max(self.missing - len(self.labels), 0) if self.labels else 0

    def to_json(self) -> dict[str, Any]:
        """Return the late input as the API shows it."""
        return {
            "asset": self.asset.name,
            "reason": self.reason,
            "effect": self.effect,
            "missing": self.missing,
            "keys": list(self.keys),
            "newest_at": self.newest_at,
        }


def late_inputs_of(asset: Asset, keys: Sequence[str]) -> dict[str, list[LateInputFact]]:
    """Return the late inputs of the present versions of these partitions, by key: one statement,
    and a second one where there are any.
    """
    values: dict[str, Any] = {"asset": asset.pk, "identity": asset.identity, "keys": list(keys)}
    with connection.cursor() as cursor:
        cursor.execute(_LATE, values)
        rows = cursor.fetchall()
    if not rows:
        return {}
    upstream = Asset.objects.select_related("partition_definition")
    assets = upstream.in_bulk({row[2] for row in rows})
    facts: dict[str, list[LateInputFact]] = {}
    for key, _, upstream_id, reason, effect, missing, missing_keys, newest_at in rows:
        fact = LateInputFact(
            assets[upstream_id], reason, effect, missing, _texts(missing_keys), newest_at
        )
        facts.setdefault(key, []).append(fact)
    return facts


def _texts(keys: Any) -> list[str]:
    """Return a JSON list, which a cursor gives as text."""
    return json.loads(keys) if isinstance(keys, str) else list(keys)

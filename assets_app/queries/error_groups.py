"""Failed runs grouped by error: the same failure a hundred times is one line."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from assets_app.models import Asset
from assets_app.models.targets import DISCOVERY
from assets_app.queries.keys import still_known
from slicewise import PartitionKey
from slicewise.keys import WHOLE

# Text that differs between two reports of the same failure.
_VARIABLE = re.compile(r"[0-9][0-9a-fTZ:.+-]*")
MOST_RUNS = 500
# Of an unpartitioned asset, so many latest runs: some more than a day of minutes has.
_MOST_OF_STREAK = 2000
# The partitions of the newest runs are examined, up to this number together; of any other run, so
# many failed partitions.
_MOST_PARTITIONS, _MOST_KEYS = 5000, 20
# A failure is resolved once another run has materialized the partition since, or holds it now. The
# failure of an unpartitioned asset stays while the next run is in progress: the asset may fail each
# minute, and would be listed by chance.
_UNRESOLVED = """
SELECT run.id, run.asset_id, run.error, run.ended_at, run.so_far > %(partitions)s, failed.keys,
    failed.is_held
FROM (
    SELECT latest.*, sum(partition_count) OVER (ORDER BY ended_at DESC, id DESC) AS so_far FROM (
        SELECT id, asset_id, error, ended_at, partition_count FROM assets_app_run
        WHERE state = 'failed' AND ended_at >= %(since)s
        ORDER BY ended_at DESC LIMIT %(runs)s
    ) AS latest
) AS run
JOIN assets_app_asset AS asset ON asset.id = run.asset_id AND asset.active
LEFT JOIN partitions_app_partitiondefinition AS definition
    ON definition.id = asset.partition_definition_id
CROSS JOIN LATERAL (
    SELECT array_agg(DISTINCT member.key) AS keys,
        bool_or(member.held_by_id IS NOT NULL) AS is_held
    FROM (
        SELECT partition.key, partition.held_by_id FROM assets_app_runpartition AS member
        JOIN assets_app_assetpartition AS partition ON partition.id = member.partition_id
        WHERE member.run_id = run.id AND partition.state = 'failed'
            AND partition.last_run_id = run.id
            AND (partition.held_by_id IS NULL OR definition.id IS NULL)
            AND partition.identity IN (coalesce(definition.identity, 'whole'), %(discovery)s)
        LIMIT CASE WHEN run.so_far > %(partitions)s THEN %(keys)s ELSE %(partitions)s END
    ) AS member
) AS failed
ORDER BY run.ended_at DESC, run.id DESC
"""
# For each unpartitioned asset, the latest runs up to a number. A success has written the time of
# materialization.
_STREAKS = """
SELECT asset.id, count(*), min(run.ended_at)
FROM unnest(%(assets)s::bigint[]) AS asset(id)
LEFT JOIN assets_app_assetpartition AS partition
    ON partition.asset_id = asset.id AND partition.identity = 'whole'
CROSS JOIN LATERAL (
    SELECT state, ended_at FROM assets_app_run WHERE asset_id = asset.id
    ORDER BY asset_id, id DESC LIMIT %(runs)s
) AS run
WHERE run.state = 'failed'
    AND (partition.materialized_at IS NULL OR run.ended_at > partition.materialized_at)
GROUP BY asset.id
"""


def error_pattern(error: str) -> str:
    """Return an error without numbers and dates, equal for two reports of the same failure."""
    return _VARIABLE.sub("#", error)


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A failed run of which partitions have stayed failed.

    ``keys`` are these partitions; an unpartitioned asset has one empty key. ``is_cut`` says that
    not all partitions of the run were examined; ``is_retried`` that the next run of an
    unpartitioned asset is in progress.
    """

    pk: int
    asset_id: int
    error: str
    ended_at: datetime
    keys: Sequence[PartitionKey]
    is_cut: bool
    is_retried: bool


class Streak(NamedTuple):
    """The failed runs of an unpartitioned asset since the last success: their number, and the end
    of the first, of a limited number of latest runs.
    """

    number: int
    since: datetime

    @property
    def is_cut(self) -> bool:
        """Whether earlier runs may have failed too."""
        return self.number >= _MOST_OF_STREAK


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """The failed runs of one asset with the same error, newest first."""

    asset: Asset
    runs: Sequence[FailedRun]
    # None for a partitioned asset.
    streak: Streak | None = None

    @property
    def number(self) -> int:
        """The number of runs."""
        return len(self.runs)

    @property
    def newest(self) -> FailedRun:
        """The run that failed last."""
        return self.runs[0]

    @property
    def oldest(self) -> FailedRun:
        """The run that failed first."""
        return self.runs[-1]

    @property
    def partition_count(self) -> int:
        """The number of failed partitions; 0 where they have no keys."""
        return sum(1 for run in self.runs for key in run.keys if key.text)

    @property
    def first_key(self) -> str:
        """The first failed partition: by time, then by text."""
        return min(self._keys(), key=_order).text

    @property
    def last_key(self) -> str:
        """The last failed partition: by time, then by text."""
        return max(self._keys(), key=_order).text

    @property
    def is_cut(self) -> bool:
        """Whether the runs may have more failed partitions than were examined."""
        return any(run.is_cut for run in self.runs)

    @property
    def retryable_ids(self) -> list[int]:
        """The runs that can be retried: no other run materializes their partitions now."""
        return [run.pk for run in self.runs if not run.is_retried]

    def _keys(self) -> Iterator[PartitionKey]:
        return (key for run in self.runs for key in run.keys)


def unresolved_failures(since: datetime) -> list[FailureGroup]:
    """Return the runs that failed since the instant and whose partitions have not been materialized
    again, by asset and error, the largest group first: two statements, and one more for
    unpartitioned assets.

    Only the latest runs are examined. Partitions that the definition has lost do not count.
    """
    rows = _rows(since)
    assets = Asset.objects.select_related("partition_definition").in_bulk(
        {asset_id for _, asset_id, *_ in rows}
    )
    groups: dict[tuple[int, str], list[FailedRun]] = {}
    for run in _existing(rows, assets):
        groups.setdefault((run.asset_id, error_pattern(run.error)), []).append(run)
    streaks = _streaks({pk for pk, _ in groups if assets[pk].definition is None})
    failure_groups = [
        FailureGroup(assets[asset_id], runs, streaks.get(asset_id))
        for (asset_id, _), runs in groups.items()
    ]
    return sorted(failure_groups, key=lambda group: (-group.number, -group.newest.pk))


def runs_failed_alike(group_of: int, since: datetime) -> list[int]:
    """Return the runs in the group of a failed run; the run alone where there is no group."""
    for group in unresolved_failures(since):
        ids = [run.pk for run in group.runs]
        if group_of in ids:
            return ids
    return [group_of]


def _rows(since: datetime) -> list[tuple[Any, ...]]:
    values: dict[str, Any] = {
        "since": since,
        "runs": MOST_RUNS,
        "partitions": _MOST_PARTITIONS,
        "keys": _MOST_KEYS,
        "discovery": DISCOVERY,
    }
    with connection.cursor() as cursor:
        cursor.execute(_UNRESOLVED, values)
        return [row for row in cursor.fetchall() if row[-2]]


def _existing(rows: Iterable[tuple[Any, ...]], assets: Mapping[int, Asset]) -> Iterator[FailedRun]:
    for pk, asset_id, error, ended_at, is_cut, keys, is_held in rows:
        if present_keys := _present_keys(assets[asset_id], keys):
            yield FailedRun(pk, asset_id, error, ended_at, present_keys, is_cut, is_held)


def _present_keys(asset: Asset, keys: Sequence[str]) -> list[PartitionKey]:
    """Return the partitions that the asset still has."""
    definition = asset.definition
    # The empty key is the key of a whole asset, and of a search for partitions.
    if definition is None or "" in keys:
        return [WHOLE]
    return list(still_known(definition, keys))


def _streaks(asset_ids: Collection[int]) -> dict[int, Streak]:
    if not asset_ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_STREAKS, {"assets": list(asset_ids), "runs": _MOST_OF_STREAK})
        return {pk: Streak(number, since) for pk, number, since in cursor.fetchall()}


def _order(key: PartitionKey) -> tuple[bool, float, str]:
    return (key.time is not None, key.time.start.timestamp() if key.time else 0.0, key.text)

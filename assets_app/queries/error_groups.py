"""Failed runs grouped by error: the same failure a hundred times is one line."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
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
# Of the newest runs, up to this number of failed partitions together; of any other run, so many. An
# index has the failed partitions alone: partitions that other runs have materialized cost nothing.
_MOST_PARTITIONS, _MOST_KEYS = 5000, 20
_MINUTE = timedelta(minutes=1)
# A failure is resolved once another run has materialized the partition since, or holds it now. The
# failure of an unpartitioned asset stays while the next run is in progress: the asset may fail each
# minute, and would be listed by chance.
_UNRESOLVED = """
SELECT run.id, run.asset_id, run.error, run.ended_at, failed.number > run.most,
    failed.keys[:run.most], failed.is_held
FROM (
    SELECT id, asset_id, error, ended_at, CASE
        WHEN sum(least(partition_count, %(partitions)s)) OVER (ORDER BY ended_at DESC, id DESC)
            > %(partitions)s THEN %(keys)s ELSE %(partitions)s END AS most
    FROM (
        SELECT id, asset_id, error, ended_at, partition_count FROM assets_app_run
        WHERE state = 'failed' AND ended_at >= %(since)s
        ORDER BY ended_at DESC LIMIT %(runs)s
    ) AS latest
) AS run
JOIN assets_app_asset AS asset ON asset.id = run.asset_id AND asset.active
LEFT JOIN partitions_app_partitiondefinition AS definition
    ON definition.id = asset.partition_definition_id
CROSS JOIN LATERAL (
    SELECT count(*) AS number, array_agg(DISTINCT member.key) AS keys,
        bool_or(member.held_by_id IS NOT NULL) AS is_held
    FROM (
        SELECT key, held_by_id FROM (
            SELECT key, held_by_id FROM assets_app_assetpartition
            WHERE last_run_id = run.id AND state = 'failed' AND held_by_id IS NULL
                AND identity IN (coalesce(definition.identity, 'whole'), %(discovery)s)
            UNION ALL
            SELECT key, held_by_id FROM assets_app_assetpartition
            WHERE last_run_id = run.id AND state = 'failed' AND held_by_id IS NOT NULL
                AND asset_id = run.asset_id AND identity = 'whole' AND definition.id IS NULL
        ) AS partition
        LIMIT run.most + 1
    ) AS member
) AS failed
ORDER BY run.ended_at DESC, run.id DESC
"""
# For each unpartitioned asset, the latest runs up to a number. A success has written the time of
# materialization. No earlier run has failed since where one of these runs is older than that.
_STREAKS = """
SELECT id, count(*) FILTER (WHERE has_failed), min(ended_at) FILTER (WHERE has_failed),
    count(*) >= %(runs)s AND bool_and(created_at > succeeded_at)
FROM (
    SELECT asset.id, run.created_at, run.ended_at, success.at AS succeeded_at,
        run.state = 'failed' AND run.ended_at > success.at AS has_failed
    FROM unnest(%(assets)s::bigint[]) AS asset(id)
    LEFT JOIN assets_app_assetpartition AS partition
        ON partition.asset_id = asset.id AND partition.identity = 'whole'
    CROSS JOIN LATERAL (SELECT coalesce(partition.materialized_at, '-infinity') AS at) AS success
    CROSS JOIN LATERAL (
        SELECT state, created_at, ended_at FROM assets_app_run WHERE asset_id = asset.id
        ORDER BY asset_id, id DESC LIMIT %(runs)s
    ) AS run
) AS latest
GROUP BY id HAVING bool_or(has_failed)
"""


def error_pattern(error: str) -> str:
    """Return an error without numbers and dates, equal for two reports of the same failure."""
    return _VARIABLE.sub("#", error)


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A failed run of which partitions have stayed failed.

    ``keys`` are these partitions; an unpartitioned asset has one empty key. ``is_cut`` says that
    the run has more of these than ``keys``; ``is_retried`` that the next run of an unpartitioned
    asset is in progress.
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
    of the first, of a limited number of latest runs. ``is_cut`` says that earlier runs may have
    failed too.
    """

    number: int
    since: datetime
    is_cut: bool


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """The failed runs of one asset with the same error, newest first."""

    asset: Asset
    runs: Sequence[FailedRun]
    # None for a partitioned asset, and before the runs are read.
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
    def is_long(self) -> bool:
        """Whether the runs failed at instants that a page tells apart."""
        return self.newest.ended_at - self.oldest.ended_at >= _MINUTE

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
        """Whether the runs have more failed partitions than keys."""
        return any(run.is_cut for run in self.runs)

    @property
    def retryable_ids(self) -> list[int]:
        """The runs that can be retried: no other run materializes their partitions now."""
        return [run.pk for run in self.runs if not run.is_retried]

    def _keys(self) -> Iterator[PartitionKey]:
        return (key for run in self.runs for key in run.keys)


def unresolved_failures(since: datetime) -> list[FailureGroup]:
    """Return the runs that failed since the instant and whose partitions have not been materialized
    again, by asset and error, the largest group first, without streaks: two statements.

    Only the latest runs are examined. Partitions that the definition has lost do not count.
    """
    rows = _rows(since)
    assets = Asset.objects.select_related("partition_definition").in_bulk(
        {asset_id for _, asset_id, *_ in rows}
    )
    groups: dict[tuple[int, str], list[FailedRun]] = {}
    for run in _existing(rows, assets):
        groups.setdefault((run.asset_id, error_pattern(run.error)), []).append(run)
    failure_groups = [
        FailureGroup(assets[asset_id], runs) for (asset_id, _), runs in groups.items()
    ]
    return sorted(failure_groups, key=lambda group: (-group.number, -group.newest.pk))


def with_streaks(groups: Sequence[FailureGroup]) -> list[FailureGroup]:
    """Return the groups with the streaks of unpartitioned assets: one statement for these assets.

    Thousands of runs of each asset are read: the caller gives the groups that a page shows.
    """
    streaks = _streaks({group.asset.pk for group in groups if group.asset.definition is None})
    return [replace(group, streak=streaks.get(group.asset.pk)) for group in groups]


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
        return {pk: Streak(*streak) for pk, *streak in cursor.fetchall()}


def _order(key: PartitionKey) -> tuple[bool, float, str]:
    return (key.time is not None, key.time.start.timestamp() if key.time else 0.0, key.text)

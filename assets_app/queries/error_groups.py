"""Failed runs grouped by error: the same failure a hundred times is one line."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from assets_app.models import Asset
from assets_app.models.targets import DISCOVERY
from assets_app.queries.keys import still_known

# Text that differs between two reports of the same failure.
_VARIABLE = re.compile(r"[0-9][0-9a-fTZ:.+-]*")
MOST_RUNS = 500
# Of a run of many partitions, so many failed keys are examined.
_MOST_KEYS = 20
# A failure is resolved once another run has materialized the partition since, or holds it now.
_UNRESOLVED = """
SELECT run.id, run.asset_id, run.error, run.ended_at, (
    SELECT array_agg(failed.key) FROM (
        SELECT partition.key FROM assets_app_runpartition AS member
        JOIN assets_app_assetpartition AS partition ON partition.id = member.partition_id
        WHERE member.run_id = run.id AND partition.state = 'failed'
            AND partition.last_run_id = run.id
            AND partition.held_by_id IS NULL
            AND partition.identity IN (coalesce(definition.identity, 'whole'), %(discovery)s)
        LIMIT %(keys)s
    ) AS failed
) AS keys
FROM (
    SELECT id, asset_id, error, ended_at FROM assets_app_run
    WHERE state = 'failed' AND ended_at >= %(since)s
    ORDER BY ended_at DESC LIMIT %(runs)s
) AS run
JOIN assets_app_asset AS asset ON asset.id = run.asset_id AND asset.active
LEFT JOIN partitions_app_partitiondefinition AS definition
    ON definition.id = asset.partition_definition_id
ORDER BY run.ended_at DESC, run.id DESC
"""


def error_pattern(error: str) -> str:
    """Return an error without numbers and dates, equal for two reports of the same failure."""
    return _VARIABLE.sub("#", error)


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A failed run of which a partition has stayed failed."""

    pk: int
    asset_id: int
    error: str
    ended_at: datetime
    # One of the failed partitions; empty for an asset without partitions.
    key: str


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """The failed runs of one asset with the same error, newest first."""

    asset: Asset
    runs: Sequence[FailedRun]

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
    def first_key(self) -> str:
        """The failed partition that is first by its text."""
        return min(run.key for run in self.runs)

    @property
    def last_key(self) -> str:
        """The failed partition that is last by its text."""
        return max(run.key for run in self.runs)


def unresolved_failures(since: datetime) -> list[FailureGroup]:
    """Return the runs that failed since the instant and whose partitions have not been materialized
    again, by asset and error, the largest group first: two statements.

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
        "keys": _MOST_KEYS,
        "discovery": DISCOVERY,
    }
    with connection.cursor() as cursor:
        cursor.execute(_UNRESOLVED, values)
        return [row for row in cursor.fetchall() if row[-1]]


def _existing(rows: Iterable[tuple[Any, ...]], assets: Mapping[int, Asset]) -> Iterator[FailedRun]:
    for pk, asset_id, error, ended_at, keys in rows:
        if _is_present(assets[asset_id], keys):
            yield FailedRun(pk, asset_id, error, ended_at, min(keys))


def _is_present(asset: Asset, keys: Sequence[str]) -> bool:
    """Return whether the asset still has one of the partitions."""
    definition = asset.definition
    # The empty key is the key of a whole asset, and of a search for partitions.
    return definition is None or "" in keys or any(True for _ in still_known(definition, keys))

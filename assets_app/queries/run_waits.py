"""The earlier partitions that waiting runs await, for lists of runs and for one: one statement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import connection

from assets_app.models import Asset, Run, RunState
from partitions_app.labels import label_of
from partitions_app.state_badges import badge_of_partition

# A run of many segments may await as many partitions: a failed partition is named before others.
_AWAITED = """
SELECT DISTINCT ON (awaited.run_id) awaited.run_id, awaited.key,
       coalesce(partition.state, 'missing'), holder.state,
       coalesce(holder.id, partition.last_run_id), count(*) OVER (PARTITION BY awaited.run_id)
FROM assets_app_awaitedpartition AS awaited
LEFT JOIN assets_app_assetpartition AS partition
    ON partition.asset_id = awaited.asset_id AND partition.identity = awaited.identity
   AND partition.key = awaited.key
LEFT JOIN assets_app_run AS holder ON holder.id = partition.held_by_id
WHERE awaited.run_id = ANY(%s)
  AND (partition.id IS NULL OR holder.id IS NOT NULL OR partition.state <> 'materialized')
ORDER BY awaited.run_id,
    holder.id IS NULL AND partition.state = 'failed' DESC NULLS LAST, awaited.id
"""


@dataclass(frozen=True, slots=True)
class AwaitedPartitionStatus:
    """A partition that a run awaits.

    ``state`` is the name of a badge. ``run_id`` is the run that holds the partition, else the last
    run of the partition. The run awaits ``further_count`` further partitions.
    """

    asset: Asset
    key: str
    state: str
    run_id: int | None
    further_count: int

    @property
    def label(self) -> str:
        """The label of the partition."""
        return label_of(self.asset.definition, self.key)


def awaited_by_run(runs: Sequence[Run]) -> dict[int, AwaitedPartitionStatus]:
    """Return the partition that each waiting run awaits, by the id of the run.

    No statement without waiting runs. A run that is about to be queued awaits no partition any
    more.
    """
    waiting = {run.pk: run for run in runs if run.state == RunState.WAITING}
    if not waiting:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_AWAITED, [list(waiting)])
        return {row[0]: _status(waiting[row[0]].asset, *row[1:]) for row in cursor.fetchall()}


def _status(
    asset: Asset, key: str, state: str, holder_state: str | None, run_id: int | None, number: int
) -> AwaitedPartitionStatus:
    shown_state = badge_of_partition(state, holder_state).name
    return AwaitedPartitionStatus(asset, key, shown_state, run_id, number - 1)


def values_of(statuses: Mapping[int, AwaitedPartitionStatus]) -> list[tuple[object, ...]]:
    """Return the values of awaited partitions that a page shows, for the version of the page."""
    return [
        (pk, status.key, status.state, status.run_id, status.further_count)
        for pk, status in statuses.items()
    ]

"""The earlier partitions for which waiting runs wait, for lists of runs: one statement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import connection

from assets_app.models import Asset, Run, RunState
from partitions_app.labels import label_of

# A run of many segments may wait for as many partitions: a failed one is named before others.
_AWAITED = """
SELECT DISTINCT ON (awaited.run_id) awaited.run_id, awaited.key,
       coalesce(partition.state, 'missing'), partition.held_by_id, partition.last_run_id,
       count(*) OVER (PARTITION BY awaited.run_id)
FROM assets_app_awaitedpartition AS awaited
LEFT JOIN assets_app_assetpartition AS partition
    ON partition.asset_id = awaited.asset_id AND partition.identity = awaited.identity
   AND partition.key = awaited.key
WHERE awaited.run_id = ANY(%s)
  AND (partition.id IS NULL OR partition.held_by_id IS NOT NULL
       OR partition.state <> 'materialized')
ORDER BY awaited.run_id,
    partition.held_by_id IS NULL AND partition.state = 'failed' DESC NULLS LAST, awaited.id
"""


@dataclass(frozen=True, slots=True)
class PastWait:
    """A partition for which a run waits, the state of the partition, the run that decides about the
    partition, and the number of further partitions.
    """

    asset: Asset
    key: str
    state: str
    run: int | None
    more: int

    @property
    def label(self) -> str:
        """The label of the partition."""
        return label_of(self.asset.definition, self.key)


def past_waits(runs: Sequence[Run]) -> dict[int, PastWait]:
    """Return the partition for which each waiting run waits, by the id of the run.

    No statement without waiting runs. A run that is about to be queued waits for no partition any
    more.
    """
    waiting = {run.pk: run for run in runs if run.state == RunState.WAITING}
    if not waiting:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_AWAITED, [list(waiting)])
        return {row[0]: _wait(waiting[row[0]].asset, *row[1:]) for row in cursor.fetchall()}


def _wait(
    asset: Asset, key: str, state: str, held_by: int | None, last_run: int | None, number: int
) -> PastWait:
    if held_by is not None:
        return PastWait(asset, key, "running", held_by, number - 1)
    return PastWait(asset, key, state, last_run if state != "missing" else None, number - 1)


def marks_of(waits: Mapping[int, PastWait]) -> list[tuple[object, ...]]:
    """Return the values of waits that a list shows."""
    return [(pk, wait.key, wait.state, wait.run, wait.more) for pk, wait in waits.items()]

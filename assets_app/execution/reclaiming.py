"""The partitions of ended runs that are to be tried once more: who has them, and taking them."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from django.db import connection

from assets_app.models import DISCOVERY, Run, RunPartition

KEYS_NAMED = 3

# What is published and on record already is left as it is; where several assets are made together,
# if that is so of all of them.
_IS_LEFT = """EXISTS (
        SELECT FROM assets_app_runpartition AS part
        JOIN assets_app_assetpartition AS own ON own.id = part.slice_id
        WHERE part.run_id = made.run_id AND part.state <> 'succeeded'
          AND own.identity = slice.identity AND own.key = slice.key
    )"""

# The slices are locked in the order in which claims and ends of runs take them. A run that finds
# its partitions has only the slice that stands for the search: what it found, it finds anew. Of two
# runs of one partition the later one makes it.
_LOOK = f"""
WITH wanted AS MATERIALIZED (
    SELECT made.run_id, slice.id, slice.key, slice.held_by_id,
           slice.identity IN (%(discovery)s, coalesce(rule.identity, 'whole')) AS in_force
    FROM assets_app_runpartition AS made
    JOIN assets_app_assetpartition AS slice ON slice.id = made.slice_id
    JOIN assets_app_asset AS asset ON asset.id = slice.asset_id
    LEFT JOIN partitions_app_partitiondefinition AS rule ON rule.id = asset.partition_definition_id
    WHERE made.run_id = ANY(%(runs)s) AND {_IS_LEFT}
      AND (slice.identity = %(discovery)s OR made.run_id <> ALL(%(searches)s))
    ORDER BY slice.asset_id, slice.identity, slice.key, made.run_id
    FOR UPDATE OF slice
), looked AS (
    SELECT *, max(run_id) OVER (PARTITION BY id) AS last_run FROM wanted
)
SELECT run_id, bool_and(in_force),
       (array_agg(key ORDER BY key) FILTER (WHERE held_by_id IS NOT NULL))[1:%(most)s],
       (array_agg(key ORDER BY key) FILTER (WHERE last_run <> run_id))[1:%(most)s], max(last_run)
FROM looked GROUP BY run_id
"""  # noqa: S608  (a part of the statement that has one home)
_TAKE = f"""
WITH taken AS (
    UPDATE assets_app_runpartition AS made
    SET state = 'pending', path = '', rows = NULL, bytes = NULL, error = ''
    FROM assets_app_assetpartition AS slice
    WHERE made.run_id = ANY(%s) AND slice.id = made.slice_id AND {_IS_LEFT}
    RETURNING made.run_id, made.slice_id
)
UPDATE assets_app_assetpartition AS slice SET held_by_id = taken.run_id
FROM taken WHERE slice.id = taken.slice_id
"""  # noqa: S608


def searches_among(run_ids: Iterable[int]) -> set[int]:
    """Return the runs that discover their partitions at run time."""
    first = RunPartition.objects.filter(run__in=list(run_ids), position=0)
    return set(first.filter(slice__identity=DISCOVERY).values_list("run_id", flat=True))


def held_elsewhere(runs: Sequence[Run], searches: Collection[int]) -> dict[int, str]:
    """Lock the runs' slices; why a run cannot have all of its own."""
    if not runs:
        return {}
    asked: dict[str, Any] = {
        "runs": [run.pk for run in runs],
        "searches": list(searches),
        "discovery": DISCOVERY,
        "most": KEYS_NAMED + 1,
    }
    with connection.cursor() as cursor:
        cursor.execute(_LOOK, asked)
        looked = {run_id: rest for run_id, *rest in cursor.fetchall()}
    found = {run.pk: _why_not(run, *looked.get(run.pk, (None, None, None, None))) for run in runs}
    return {pk: said for pk, said in found.items() if said}


def _why_not(
    run: Run,
    in_force: bool | None,
    held: Sequence[str] | None,
    shared: Sequence[str] | None,
    by: int | None,
) -> str:
    if in_force is None:
        return f"Run {run.pk} has no partition left."
    if not in_force:
        return cut_anew(run)
    if held:
        return f"Run {run.pk} cannot be retried: {in_flight(run, held)}"
    if shared:
        return f"Run {run.pk} is left out: run {by} makes {_named(run, shared)} as well."
    return ""


def forget_found(searches: Sequence[int]) -> None:
    """Delete partitions that failed runs discovered: another attempt looks again."""
    if searches:
        made = RunPartition.objects.filter(run__in=searches)
        made.exclude(slice__identity=DISCOVERY).delete()
        Run.objects.filter(pk__in=searches).update(selection="", partition_count=0)


def take(run_ids: Sequence[int]) -> None:
    """Give the runs all their partitions but those that they have published. Their slices are
    locked, by `held_elsewhere`.
    """
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, [list(run_ids)])


def cut_anew(run: Run) -> str:
    """Say why a run's partitions are none of its asset's."""
    return (
        f"{run.asset.name} is partitioned in another way by now than when run {run.pk} was made:"
        " materialize the partitions that it has now."
    )


def in_flight(run: Run, keys: Sequence[str]) -> str:
    """Say that some of a run's partitions are held by another run."""
    return f"another run is making {_named(run, keys)}."


def _named(run: Run, keys: Sequence[str]) -> str:
    more = "…" if len(keys) > KEYS_NAMED else ""
    return f"{run.asset.name} {', '.join(keys[:KEYS_NAMED])}".strip() + more

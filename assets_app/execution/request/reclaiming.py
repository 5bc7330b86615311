"""The partitions of ended runs that are to be tried again: their holders, and a new claim."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from django.db import connection
from django.db.models import F

from assets_app.execution.queue.runtime_keys import key_set_of, locked_keys
from assets_app.models import DISCOVERY, ProducerVersion, Run, RunPartition, Target
from slicewise.partitions import PartitionRow, partition_rows
from slicewise.texts import listed
from slicewise_server.web.request_errors import ConflictingRequest

KEYS_NAMED = 3

# Partitions that are published and on record are left out; for assets that are materialized
# together, a key is left out if all of its partitions are published.
_IS_LEFT = """EXISTS (
        SELECT FROM assets_app_runpartition AS part
        JOIN assets_app_assetpartition AS own ON own.id = part.partition_id
        WHERE part.run_id = run_partition.run_id AND part.state <> 'succeeded'
          AND own.identity = partition.identity AND own.key = partition.key
    )"""

# The rows are locked in the order in which claims and ends of runs lock rows. A run that discovers
# its partitions has only the row that stands for the search: all partitions are discovered anew. Of
# two runs of one partition, the later run materializes the partition.
_LOOK = f"""
WITH requested AS MATERIALIZED (
    SELECT run_partition.run_id, partition.id, partition.key, partition.held_by_id,
           partition.identity IN (%(discovery)s, coalesce(rule.identity, 'whole')) AS in_force
    FROM assets_app_runpartition AS run_partition
    JOIN assets_app_assetpartition AS partition ON partition.id = run_partition.partition_id
    JOIN assets_app_asset AS asset ON asset.id = partition.asset_id
    LEFT JOIN partitions_app_partitiondefinition AS rule ON rule.id = asset.partition_definition_id
    WHERE run_partition.run_id = ANY(%(runs)s) AND {_IS_LEFT}
      AND (partition.identity = %(discovery)s OR run_partition.run_id <> ALL(%(searches)s))
    ORDER BY partition.asset_id, partition.identity, partition.key, run_partition.run_id
    FOR UPDATE OF partition
), ranked AS (
    SELECT *, max(run_id) OVER (PARTITION BY id) AS last_run FROM requested
)
SELECT run_id, bool_and(in_force),
       (array_agg(key ORDER BY key) FILTER (WHERE held_by_id IS NOT NULL))[1:%(most)s],
       (array_agg(key ORDER BY key) FILTER (WHERE last_run <> run_id))[1:%(most)s], max(last_run)
FROM ranked GROUP BY run_id
"""  # noqa: S608  (a part of the statement that has one home)
_TAKE = f"""
WITH reclaimed AS (
    UPDATE assets_app_runpartition AS run_partition
    SET state = 'pending', path = '', rows = NULL, bytes = NULL, error = ''
    FROM assets_app_assetpartition AS partition
    WHERE run_partition.run_id = ANY(%s) AND partition.id = run_partition.partition_id
      AND {_IS_LEFT}
    RETURNING run_partition.run_id, run_partition.partition_id
)
UPDATE assets_app_assetpartition AS partition SET held_by_id = reclaimed.run_id
FROM reclaimed WHERE partition.id = reclaimed.partition_id
"""  # noqa: S608


def searches_among(run_ids: Iterable[int]) -> set[int]:
    """Return the runs that discover their partitions at run time."""
    first = RunPartition.objects.filter(run__in=list(run_ids), position=0)
    return set(first.filter(partition__identity=DISCOVERY).values_list("run_id", flat=True))


def rows_of(run: Run) -> tuple[list[PartitionRow], bool]:
    """Return the run's partitions in order, and whether the run is to discover its partitions.

    Raises ConflictingRequest if the run has no partitions, or none in the present definition.
    """
    if run.pk in searches_among([run.pk]):
        return list(partition_rows(None, None)), True
    run_partitions = run.partitions.filter(partition__asset=run.asset_id).order_by("position")
    columns = ("key", "window_start", "window_end", "segment", "bucket", "identity")
    rows = list(run_partitions.values_list(*(f"partition__{column}" for column in columns)))
    if not rows:
        raise ConflictingRequest({"": f"Run {run.pk} has no partitions any more."})
    if any(identity != run.asset.identity for *_, identity in rows):
        raise ConflictingRequest({"": repartitioned_sentence(run)})
    return [PartitionRow(*row) for *row, _ in rows], False


def refusals_of_unwritten(
    runs: Mapping[int, Run], versions: Mapping[int, ProducerVersion]
) -> dict[int, str]:
    """Return, by run, why a version cannot retry the run: the run has claimed partitions of an
    asset that the version does not write, and its success would record these as materialized.

    One statement, and none where each version writes all assets of the run's own version.
    """
    unwritten_names = {
        pk: names
        for pk, version in versions.items()
        if (names := set(runs[pk].producer_version.outlets) - set(version.outlets))
    }
    if not unwritten_names:
        return {}
    claimed = RunPartition.objects.filter(
        run__in=unwritten_names, partition__asset__name__in=set().union(*unwritten_names.values())
    )
    refused_names: dict[int, list[str]] = {}
    for pk, name in claimed.order_by().values_list("run", "partition__asset__name").distinct():
        if name in unwritten_names[pk]:
            refused_names.setdefault(pk, []).append(name)
    return {
        pk: f"Run {pk} materializes {listed(sorted(names), KEYS_NAMED)} too, and the newest code of"
        f" {runs[pk].asset.name} does not: re-run the run instead."
        for pk, names in refused_names.items()
    }


def refusals_of_removed(runs: Sequence[Run], searches: Collection[int]) -> dict[int, str]:
    """Return, by run, why a run has keys to materialize that were removed from a set found at run
    time; lock the other such keys.

    Call the function before `refusals_of_held`: keys are locked before partitions, as in claims.
    """
    key_sets: dict[int, int] = {}
    for run in runs:
        key_set = key_set_of(Target(run.asset, is_discovering=run.pk in searches))
        if key_set is not None:
            key_sets[run.pk] = key_set
    if not key_sets:
        return {}
    # Partitions of an earlier definition have another refusal: the set never had these keys.
    unpublished = RunPartition.objects.filter(
        run__in=key_sets, partition__identity=F("run__asset__partition_definition__identity")
    ).exclude(state=RunPartition.State.SUCCEEDED)
    keys_by_run: dict[int, set[str]] = {}
    keys_by_set: dict[int, set[str]] = {}
    for pk, key in unpublished.order_by().values_list("run", "partition__key"):
        keys_by_run.setdefault(pk, set()).add(key)
        keys_by_set.setdefault(key_sets[pk], set()).add(key)
    present_keys = locked_keys(keys_by_set)
    names = {run.pk: run.asset.name for run in runs}
    return {
        pk: f"Run {pk} cannot be retried: {names[pk]} has no partition"
        f" {listed(removed_keys, KEYS_NAMED)} any more."
        for pk, keys in keys_by_run.items()
        if (removed_keys := sorted(keys - present_keys[key_sets[pk]]))
    }


def refusals_of_held(runs: Sequence[Run], searches: Collection[int]) -> dict[int, str]:
    """Lock the runs' partitions; return by run why the run cannot have all of its partitions."""
    if not runs:
        return {}
    values: dict[str, Any] = {
        "runs": [run.pk for run in runs],
        "searches": list(searches),
        "discovery": DISCOVERY,
        "most": KEYS_NAMED + 1,
    }
    with connection.cursor() as cursor:
        cursor.execute(_LOOK, values)
        looked = {run_id: rest for run_id, *rest in cursor.fetchall()}
    reasons = {run.pk: _refusal(run, *looked.get(run.pk, (None, None, None, None))) for run in runs}
    return {pk: reason for pk, reason in reasons.items() if reason}


def _refusal(
    run: Run,
    in_force: bool | None,
    held_keys: Sequence[str] | None,
    shared: Sequence[str] | None,
    later_id: int | None,
) -> str:
    if in_force is None:
        return f"Run {run.pk} has no partitions any more."
    if not in_force:
        return repartitioned_sentence(run)
    if held_keys:
        return f"Run {run.pk} cannot be retried: {in_flight(run, held_keys)}"
    if shared:
        return f"Run {run.pk} is left out: run {later_id} covers {_key_list(run, shared)} too."
    return ""


def delete_discovered(searches: Sequence[int]) -> None:
    """Delete partitions that failed runs discovered: another attempt searches again."""
    if searches:
        run_partitions = RunPartition.objects.filter(run__in=searches)
        run_partitions.exclude(partition__identity=DISCOVERY).delete()
        Run.objects.filter(pk__in=searches).update(selection="", partition_count=0)


def reclaim(run_ids: Sequence[int]) -> None:
    """Claim the partitions that the runs have not published.

    The rows must be locked, by `refusals_of_held`.
    """
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, [list(run_ids)])


def repartitioned_sentence(run: Run) -> str:
    """Say that a run's partitions are no partitions of its asset any more."""
    return (
        f"{run.asset.name} is partitioned differently since run {run.pk} was created:"
        " materialize the partitions that it has now."
    )


def in_flight(run: Run, keys: Sequence[str]) -> str:
    """Say that another run holds some of a run's partitions."""
    return f"another run is materializing {_key_list(run, keys)}."


def _key_list(run: Run, keys: Sequence[str]) -> str:
    more = "…" if len(keys) > KEYS_NAMED else ""
    return f"{run.asset.name} {', '.join(keys[:KEYS_NAMED])}".strip() + more

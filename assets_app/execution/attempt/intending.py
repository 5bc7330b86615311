"""The contents of an intent to publish: staged and discovered partitions, and a partial failure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import connection

import slicewise
from assets_app.execution.attempt.outputs import DiscoveredKeys, StagedOutlet, discovered_rows
from assets_app.execution.queue.claims import claim_discovered_rows, describe
from assets_app.execution.queue.outlets import claimed_outlet_ids
from assets_app.models import DISCOVERY, Run, RunAttempt

_STORE_REASONS = """
UPDATE assets_app_runpartition AS run_partition SET error = unpublished.error
FROM unnest(%s::text[], %s::text[]) AS unpublished(key, error),
     assets_app_assetpartition AS partition
WHERE run_partition.run_id = %s AND partition.id = run_partition.partition_id
  AND partition.key = unpublished.key COLLATE "C"
  AND run_partition.state = 'pending'
"""


class DiscoveredKeysHeld(Exception):
    """Other runs are materializing partitions that this run has discovered and written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialFailure:
    """The failure of a run that publishes some partitions, with a reason for each other
    partition.
    """

    error: str
    traceback: str
    # By key text.
    reasons: Mapping[str, str]


def store_partial_failure(attempt: RunAttempt, partly: PartialFailure) -> None:
    """Store the failure of the attempt, and the reasons why partitions are not published."""
    failure = {"error": partly.error, "traceback": partly.traceback}
    attempt.partly = failure
    RunAttempt.objects.filter(pk=attempt.pk).update(partly=failure)
    with connection.cursor() as cursor:
        columns = list(partly.reasons), list(partly.reasons.values())
        cursor.execute(_STORE_REASONS, [*columns, attempt.run_id])


def claim_discovered(
    run_id: int, outlets: Sequence[StagedOutlet], found_keys: DiscoveredKeys
) -> None:
    """Claim the discovered keys of the run's own set for the run.

    A key that the run only added, while another run materializes the partition, is left to that
    run. Raises DiscoveredKeysHeld if this run has written such a partition.
    """
    runs = Run.objects.select_related("asset__partition_definition", "producer_version")
    run = runs.defer("producer_version__source").get(pk=run_id)
    if not run.partitions.filter(partition__identity=DISCOVERY).exists():
        return
    spec = run.producer_version.spec.partition_of(run.asset.name) or {}
    definition = slicewise.PartitionDefinition.from_json(spec)
    rows = discovered_rows(found_keys, definition.name or "")
    ids = list(claimed_outlet_ids(run).values())
    held_keys = claim_discovered_rows(run_id, rows, ids, definition.identity) if rows else set()
    written = {partition["key"] for outlet in outlets for partition in outlet.partitions}
    if refused := sorted(held_keys & written):
        raise DiscoveredKeysHeld(
            f"Another run is materializing {run.asset.name} {', '.join(refused[:3])},"
            " and this run has discovered and written the same partition."
        )
    claimed_rows = [row for row in rows if row.key not in held_keys]
    Run.objects.filter(pk=run_id).update(
        selection=describe(claimed_rows), partition_count=len(claimed_rows)
    )


def store_staged(run_id: int, outlet: StagedOutlet) -> None:
    """Store the paths and sizes of the outlet's staged partitions."""
    staged = outlet.partitions
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE assets_app_runpartition AS run_partition
            SET path = staged.path, rows = staged.rows, bytes = staged.bytes
            FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::bigint[])
                     AS staged(key, path, rows, bytes),
                 assets_app_assetpartition AS partition
            WHERE run_partition.run_id = %s AND partition.id = run_partition.partition_id
              AND partition.asset_id = %s
              AND partition.key = staged.key
            """,
            [
                [partition["key"] for partition in staged],
                [partition["path"] for partition in staged],
                [partition["rows"] for partition in staged],
                [partition["bytes"] for partition in staged],
                run_id,
                outlet.asset_id,
            ],
        )

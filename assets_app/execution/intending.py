"""What belongs to the intent to publish: partitions with their sizes, found ones, and those that
are left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import connection

import slicewise
from assets_app.execution.claims import claim_found, describe
from assets_app.execution.outlets import claimed_outlet_ids
from assets_app.execution.outputs import Found, StagedOutlet, found_rows
from assets_app.models import DISCOVERY, Run, RunAttempt

_KEEP_REASONS = """
UPDATE assets_app_runpartition AS made SET error = left_out.error
FROM unnest(%s::text[], %s::text[]) AS left_out(key, error), assets_app_assetpartition AS slice
WHERE made.run_id = %s AND slice.id = made.slice_id AND slice.key = left_out.key COLLATE "C"
  AND made.state = 'pending'
"""


class FoundKeysHeld(Exception):
    """Other runs are making partitions that this one has found and written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partly:
    """Why a run fails of which some partitions are published, and what kept each of the others."""

    error: str
    traceback: str
    # By key text.
    reasons: Mapping[str, str]


def keep_unmade(attempt: RunAttempt, partly: Partly) -> None:
    """Write down what the attempt fails with, and why it leaves partitions out."""
    failure = {"error": partly.error, "traceback": partly.traceback}
    attempt.partly = failure
    RunAttempt.objects.filter(pk=attempt.pk).update(partly=failure)
    with connection.cursor() as cursor:
        columns = list(partly.reasons), list(partly.reasons.values())
        cursor.execute(_KEEP_REASONS, [*columns, attempt.run_id])


def take_found(run_id: int, outlets: Sequence[StagedOutlet], found: Found) -> None:
    """Claim the discovered keys of the run's own set for the run.

    A key that the run only added, while another run makes its partition, is left to that run.
    """
    runs = Run.objects.select_related("asset__partition_definition", "producer_version")
    run = runs.defer("producer_version__source").get(pk=run_id)
    if not run.partitions.filter(slice__identity=DISCOVERY).exists():
        return
    spec = run.producer_version.partition_of(run.asset.name) or {}
    rule = slicewise.PartitionDefinition.from_json(spec)
    rows = found_rows(found, rule.name or "")
    ids = list(claimed_outlet_ids(run).values())
    held = claim_found(run_id, rows, ids, rule.identity) if rows else set()
    written = {piece["key"] for outlet in outlets for piece in outlet.partitions}
    if refused := sorted(held & written):
        raise FoundKeysHeld(
            f"Another run is making {run.asset.name} {', '.join(refused[:3])},"
            " which this one has found and written."
        )
    made = [row for row in rows if row.key not in held]
    Run.objects.filter(pk=run_id).update(selection=describe(made), partition_count=len(made))


def keep_staged(run_id: int, outlet: StagedOutlet) -> None:
    """Write down the outlet's partitions, with their sizes."""
    staged = outlet.partitions
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE assets_app_runpartition AS made
            SET path = staged.path, rows = staged.rows, bytes = staged.bytes
            FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::bigint[])
                     AS staged(key, path, rows, bytes),
                 assets_app_assetpartition AS slice
            WHERE made.run_id = %s AND slice.id = made.slice_id AND slice.asset_id = %s
              AND slice.key = staged.key
            """,
            [
                [piece["key"] for piece in staged],
                [piece["path"] for piece in staged],
                [piece["rows"] for piece in staged],
                [piece["bytes"] for piece in staged],
                run_id,
                outlet.asset_id,
            ],
        )

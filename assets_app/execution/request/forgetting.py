"""Removal of partitions from the record, so that they are missing again. No data is touched."""

from collections.abc import Sequence

from django.db import connection, transaction

from accounts_app import audit, policy
from accounts_app.models import User
from assets_app.execution.queue.settling import COUNTS_FOLLOW
from assets_app.execution.request.requests import in_flight_sentence, selected_rows
from assets_app.models import Asset, AssetPartition, PartitionState
from assets_app.models.partitions import AssetPartitionQuerySet
from assets_app.queries.clock import database_now
from slicewise_server.web.request_errors import ConflictingRequest, InvalidRequest

# The next version is the forgotten version plus one: no record is overwritten, and partitions that
# read the forgotten version become stale with the next version.
_FORGET = f"""
WITH held AS MATERIALIZED (
    SELECT partition.id, partition.asset_id, partition.identity, partition.bucket,
           partition.segment,
           partition.state AS old, 'missing' AS new
    FROM assets_app_assetpartition AS partition WHERE partition.id = ANY(%(partitions)s)
), forgotten AS (
    UPDATE assets_app_assetpartition AS partition
    SET state = 'missing', version = 0,
        forgotten_version = greatest(partition.version, partition.forgotten_version),
        rows = NULL, bytes = NULL, materialized_at = NULL
    FROM held WHERE partition.id = held.id
), {COUNTS_FOLLOW}
SELECT count(*) FROM held
"""  # noqa: S608  (a part of the statement that has one home)


def forget_partitions(asset: Asset, selection: str, *, user: User) -> list[str]:
    """Make the selected partitions missing again; return the keys that were not missing.

    The data stays in place, and the history on record. Nothing becomes due: a backfill, a person or
    the next upstream write materializes the partitions again; only then partitions that read the
    forgotten versions are stale. Raises InvalidRequest on ``selection``, ConflictingRequest while a
    run holds one of the partitions, and PermissionDenied.
    """
    policy.require(user, policy.Action.PARTITIONS)
    rows = selected_rows(
        asset, selection, now=database_now(), instead="Forget the partitions in several requests."
    )
    with transaction.atomic():
        own_rows = AssetPartition.objects.filter(asset=asset, identity=asset.identity)
        partitions = lock_partitions(own_rows.filter(key__in=[row.key for row in rows]))
        held_keys = {row.key for row in partitions if row.held_by_id is not None}
        if held_keys:
            held_rows = [row for row in rows if row.key in held_keys]
            raise ConflictingRequest({"selection": in_flight_sentence(asset, held_rows)})
        recorded = [row for row in partitions if row.state != PartitionState.MISSING]
        if not recorded:
            raise InvalidRequest(
                {"selection": f"All selected partitions are missing: {asset.name} {selection}"}
            )
        forget_locked_partitions([row.pk for row in recorded])
        keys = [row.key for row in recorded]
        detail = {"selection": selection, "partitions": len(keys)}
        audit.record(user, "forget partitions", "asset", asset.name, detail)
    return keys


def lock_partitions(chosen: AssetPartitionQuerySet) -> list[AssetPartition]:
    """Return the chosen partitions, locked in the order in which claims lock rows."""
    # By the id of the asset: for the order of assets, the assets would be joined, and locked as
    # well, so that each new run of an asset would wait.
    return list(chosen.select_for_update().order_by("asset_id", "identity", "key"))


def forget_locked_partitions(ids: Sequence[int]) -> None:
    """Make partitions missing whose rows are locked; counts change in the same statement."""
    with connection.cursor() as cursor:
        cursor.execute(_FORGET, {"partitions": list(ids)})

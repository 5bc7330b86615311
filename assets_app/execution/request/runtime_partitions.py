"""Additions and removals of keys in a set found at run time, by a person (AIP-76)."""

from collections.abc import Sequence

from django.conf import settings
from django.db import transaction

import slicewise
from accounts_app import audit, policy
from accounts_app.models import User
from assets_app.execution.attempt.outputs import refuse_another_of_its_text
from assets_app.execution.request.patience import patient_transaction
from assets_app.models import Asset, AssetPartition
from assets_app.queries.clock import database_now
from partitions_app.labels import label_of_key
from partitions_app.models import PartitionDefinition, RuntimePartition
from slicewise.partitions import runtime_key
from slicewise_server.web.request_errors import ConflictingRequest, InvalidRequest
from slicewise_server.web.storable import is_storable

_NAMED = 3


def add_partitions(asset: Asset, values: Sequence[object], *, user: User) -> list[str]:
    """Add keys to the asset's set, for all assets that share the set; return the texts of new keys.

    A removed key is listed again, with its history. No data comes with a key: the partition is
    missing, and no downstream partition is due until the partition is materialized or reported as
    written. Raises InvalidRequest on ``asset`` or ``keys``, and PermissionDenied.
    """
    policy.require(user, policy.Action.PARTITIONS)
    row, definition = _set_of(asset)
    _refuse_count(values)
    keys = [_key(definition, value) for value in values]
    with transaction.atomic():
        new = row.add_keys([(key, label_of_key(key)) for key in keys], run_id=None)
        if new:
            audit.record(user, "add partitions", "asset", asset.name, {"keys": new[:100]})
    return new


def remove_partitions(asset: Asset, keys: Sequence[str], *, user: User) -> list[str]:
    """Remove keys, by their texts, from the asset's set.

    Removed keys are no longer listed and make no partition due. The data of the partitions stays,
    with its history. A removal is refused while a run materializes one of the partitions. A run
    that discovers a removed key adds the key again. Raises InvalidRequest on ``asset`` or ``keys``,
    ConflictingRequest on ``keys``, and PermissionDenied.
    """
    policy.require(user, policy.Action.PARTITIONS)
    row, _ = _set_of(asset)
    _refuse_count(keys)
    requested_keys = sorted(set(keys))
    with patient_transaction("keys"):
        set_keys = RuntimePartition.objects.select_for_update().filter(
            definition=row,
            key__in=[key for key in requested_keys if is_storable(key)],
            removed_at=None,
        )
        present_keys = set(set_keys.order_by("key").values_list("key", flat=True))
        if unknown := [key for key in requested_keys if key not in present_keys]:
            raise InvalidRequest({"keys": f"{asset.name} has no partition {_key_list(unknown)}."})
        _refuse_held(row, requested_keys)
        set_keys.update(removed_at=database_now())
        row.revise()
        audit.record(user, "remove partitions", "asset", asset.name, {"keys": requested_keys[:100]})
    return requested_keys


def _set_of(asset: Asset) -> tuple[PartitionDefinition, slicewise.PartitionAtRuntime]:
    row = asset.partition_definition
    definition = None if row is None else row.definition
    if row is None or not isinstance(definition, slicewise.PartitionAtRuntime):
        raise InvalidRequest(
            {
                "asset": f"The partitions of {asset.name} follow from its definition: keys are"
                " added and removed only of a set found at run time (PartitionAtRuntime)."
            }
        )
    return row, definition


def _key(definition: slicewise.PartitionAtRuntime, value: object) -> slicewise.PartitionKey:
    try:
        if isinstance(value, str) and not is_storable(value):
            raise ValueError("Text may not hold NUL or surrogate characters.")
        key = runtime_key(definition, value)
        refuse_another_of_its_text(definition, key)
    except (ValueError, TypeError) as error:
        raise InvalidRequest({"keys": str(error)}) from error
    return key


def _refuse_count(keys: Sequence[object]) -> None:
    most = settings.MAX_PARTITIONS_PER_REQUEST
    if not keys:
        raise InvalidRequest({"keys": "Name one key at least."})
    if len(keys) > most:
        raise InvalidRequest(
            {
                "keys": f"{len(keys):,} keys are more than one request may name"
                f" ({most:,}, setting MAX_PARTITIONS_PER_REQUEST)."
            }
        )


def _refuse_held(row: PartitionDefinition, keys: Sequence[str]) -> None:
    held_partitions = AssetPartition.objects.filter(
        asset__partition_definition=row, identity=row.identity, key__in=keys, held_by__isnull=False
    ).select_related("asset")
    first = held_partitions.order_by("asset__name", "key").first()
    if first is not None:
        raise ConflictingRequest(
            {
                "keys": f"Run {first.held_by_id} is materializing {first.asset.name} {first.key}:"
                " wait until the run has ended, or cancel the run."
            }
        )


def _key_list(keys: Sequence[str]) -> str:
    return ", ".join(key[:100] for key in keys[:_NAMED]) + ("…" if len(keys) > _NAMED else "")

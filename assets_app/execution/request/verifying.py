"""Comparison of partitions' data with the records of the publication."""

from collections.abc import Sequence
from dataclasses import dataclass

from accounts_app import policy
from accounts_app.models import User
from assets_app.execution.data.connections import ConnectionsError
from assets_app.execution.data.data_files import storage_of
from assets_app.execution.data.recorded import records_of
from assets_app.execution.request.requests import preview_selection
from assets_app.models import Asset, AssetPartition
from slicewise import PartitionKey, PartitionKeyError
from slicewise.io import Difference, NoStorageError, Storage, find_differences
from slicewise.keys import WHOLE
from slicewise.storage import StorageError
from slicewise_server.web.request_errors import InvalidRequest

_COMPARED_AT_ONCE = 2000


@dataclass(frozen=True, slots=True)
class Verification:
    """The number of partitions that were compared with the records, and the differences."""

    compared: int
    differing: Sequence[Difference]


def verify_partitions(
    asset: Asset, selection: str, *, user: User, at_most: int | None = None
) -> Verification:
    """Compare the data of materialized partitions, as far as selected, with the records.

    The data is read from this process, which has to reach the storage. Raises InvalidRequest on
    ``asset`` if the process does not reach the storage, or the storage does not know how much data
    it holds, and on ``selection`` for more than ``at_most`` partitions, for no partition, and for
    any selection of an asset that is not partitioned; and PermissionDenied.
    """
    policy.require(user, policy.Action.MATERIALIZE)
    keys = _present_keys(asset, selection)
    if at_most is not None and len(keys) > at_most:
        raise InvalidRequest(
            {
                "selection": f"{len(keys):,} partitions are more than one request may name"
                f" ({at_most:,}, setting MAX_PARTITIONS_PER_REQUEST). Select fewer, or use the"
                " command slicewise partitions verify."
            }
        )
    storage = reachable_storage(asset)
    compared, differing = 0, list[Difference]()

    for start in range(0, len(keys), _COMPARED_AT_ONCE):
        batch = keys[start : start + _COMPARED_AT_ONCE]
        records = records_of(asset, [key.text for key in batch])
        try:
            differences = find_differences(
                storage,
                asset.definition,
                [key for key in batch if key.text in records],
                lambda texts: records_of(asset, texts),
            )
        except (OSError, StorageError, ValueError) as error:
            raise InvalidRequest({"asset": f"{asset.name} cannot be read: {error}"}) from error
        if differences is None:
            raise InvalidRequest(
                {"asset": f"The storage of {asset.name} does not say how much data it holds."}
            )
        compared += len(records)
        differing += differences
    return Verification(compared, differing)


def reachable_storage(asset: Asset) -> Storage:
    """Return the storage of the asset's data; raise InvalidRequest if it is out of reach here."""
    try:
        storage = storage_of(
            asset.canonical_uri,
            asset=asset.name,
            format=asset.format or None,
            columns=asset.columns or (),
        )
        if not storage.is_reachable():
            raise InvalidRequest(
                {
                    "asset": f"{asset.canonical_uri} is not reachable from this host: use a host"
                    " that reaches the data, or restore the data."
                }
            )
    except (NoStorageError, ConnectionsError, OSError, StorageError) as error:
        raise InvalidRequest({"asset": f"{asset.name} cannot be read: {error}"}) from error
    return storage


def _present_keys(asset: Asset, selection: str) -> list[PartitionKey]:
    """Return the keys of partitions with data that the present definition has, in order.

    Raises InvalidRequest on ``selection`` for a selection that selects no partition of the asset.
    """
    definition = asset.definition
    # Refuses any selection of an asset that is not partitioned.
    chosen = preview_selection(asset, selection) if selection.strip() else None
    rows = AssetPartition.objects.materialized_of(asset).order_by("window_start", "segment")
    if definition is None:
        return [WHOLE] if rows.exists() else []
    keys: list[PartitionKey] = []
    for text in rows.values_list("key", flat=True):
        try:
            key = definition.parse(text)
        except PartitionKeyError:
            continue
        if chosen is None or key in chosen:
            keys.append(key)
    return keys

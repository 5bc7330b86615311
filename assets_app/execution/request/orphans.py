"""Search and removal of the data of partitions that an asset's definition no longer has."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from django.db import transaction
from django.db.models import Q

from accounts_app import audit, policy
from accounts_app.models import User
from assets_app.execution.request.forgetting import forget_locked_partitions, lock_partitions
from assets_app.execution.request.verifying import reachable_storage
from assets_app.models import Asset, AssetPartition
from assets_app.queries.orphans import OrphanRow, orphan_rows
from slicewise.io import Storage, Writer, find_storage
from slicewise.partitions import dimension_names, folder_names, has_folder_of, possible_key_texts
from slicewise.storage import UNPARTITIONED, StorageError
from slicewise.texts import masked_uri
from slicewise_server.web.request_errors import InvalidRequest

# Rows stay locked while the data of so many partitions is removed.
_REMOVED_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class Orphan:
    """A partition with data that is not in the definition; ``kept`` says why the data must stay."""

    row: OrphanRow
    kept: str = ""


@dataclass(frozen=True, slots=True)
class Removal:
    """The partitions whose data was removed, and the partitions whose data was kept."""

    removed: list[Orphan] = field(default_factory=list)
    kept: list[Orphan] = field(default_factory=list)


def find_orphans(asset: Asset, *, limit: int | None = None) -> list[Orphan]:
    """Return the partitions on record that the definition does not have, in order."""
    return _with_reasons(asset, orphan_rows(asset, limit=limit))


def remove_orphans(asset: Asset, *, user: User, only: Collection[int] | None = None) -> Removal:
    """Remove the data of partitions that are not in the definition; make the partitions missing.

    ``only`` has the ids of the partitions that may be removed: partitions that a person has seen.
    Data must stay if a run holds the partition, if another program has written the data, or if a
    present partition of this or another asset has the folder. Raises InvalidRequest on ``asset`` if
    this process does not reach the data or the storage removes nothing, and PermissionDenied.
    """
    policy.require(user, policy.Action.PARTITIONS)
    storage, removal = reachable_storage(asset), Removal()
    ids = [row.partition_id for row in orphan_rows(asset)]
    chosen_ids = [pk for pk in ids if only is None or pk in only]
    for start in range(0, len(chosen_ids), _REMOVED_AT_ONCE):
        batch = chosen_ids[start : start + _REMOVED_AT_ONCE]
        try:
            _remove_batch(asset.pk, storage, batch, removal, user)
        except (OSError, StorageError, ValueError) as error:
            raise InvalidRequest(
                {"asset": f"Not all data of {asset.name} could be removed: {error}"}
            ) from error
    return removal


@transaction.atomic
def _remove_batch(
    asset_id: int, storage: Storage, ids: Sequence[int], removal: Removal, user: User
) -> None:
    # A new definition waits for this lock, and so does a run that would claim one of the
    # partitions.
    Asset.objects.select_for_update(no_key=True).get(pk=asset_id)
    asset = Asset.objects.select_related("partition_definition").get(pk=asset_id)
    lock_partitions(AssetPartition.objects.filter(pk__in=ids))
    if asset.canonical_uri != storage.location.uri:
        raise StorageError("the URI of the asset has changed since")
    orphans = _with_reasons(asset, orphan_rows(asset, partitions=ids))
    free = [orphan.row for orphan in orphans if not orphan.kept]
    reasons = storage.remove(_writers(free)) if free else {}
    after = [
        Orphan(orphan.row, orphan.kept or reasons.get(orphan.row.path, "")) for orphan in orphans
    ]
    removed = [orphan for orphan in after if not orphan.kept]
    if removed:
        forget_locked_partitions([orphan.row.partition_id for orphan in removed])
        keys = [orphan.row.key for orphan in removed]
        audit.record(user, "remove orphans", "asset", asset.name, {"partitions": keys})
    removal.removed.extend(removed)
    removal.kept.extend(orphan for orphan in after if orphan.kept)


def _writers(rows: Sequence[OrphanRow]) -> Mapping[str, Sequence[Writer]]:
    """Return the attempts on record, by path: partitions of two definitions may share a folder."""
    writers: dict[str, list[Writer]] = {}
    for row in rows:
        if row.run_id is not None:
            writer = Writer(run_id=row.run_id, attempt=row.attempt)
            writers.setdefault(row.path, []).append(writer)
    return writers


def _with_reasons(asset: Asset, rows: Sequence[OrphanRow]) -> list[Orphan]:
    own_reasons = {row.partition_id: _own_reason(asset, row) for row in rows}
    paths = {row.path for row in rows if not own_reasons[row.partition_id]}
    used = _used_by_others(asset, paths) if paths else {}
    held_keys = _held_keys(asset, paths) if paths else frozenset()
    return [
        Orphan(
            row,
            own_reasons[row.partition_id]
            or used.get(row.path, "")
            or (
                "a run is materializing the partition"
                if not held_keys.isdisjoint(possible_key_texts(row.path))
                else ""
            ),
        )
        for row in rows
    ]


def _own_reason(asset: Asset, row: OrphanRow) -> str:
    """Return why the data must stay, as far as the partition's own asset says."""
    if row.is_held:
        return "a run is materializing the partition"
    if row.run_id is None or not row.path or not row.root:
        return "no run has written it"
    if row.root != asset.canonical_uri:
        return f"its data is at {masked_uri(row.root)}"
    if has_folder_of(asset.definition, row.path):
        return "a present partition has its folder"
    storage = find_storage(asset.canonical_uri)
    is_apart = storage is not None and storage.keeps_definitions_apart
    if not is_apart and (
        row.path == UNPARTITIONED or folder_names(row.path) != dimension_names(asset.definition)
    ):
        return "its rows cannot be distinguished from rows of present partitions"
    return ""


def _held_keys(asset: Asset, paths: Collection[str]) -> frozenset[str]:
    """Return the keys of partitions of the asset, under any definition, that runs hold."""
    keys = [key for path in paths for key in possible_key_texts(path)]
    held_partitions = AssetPartition.objects.filter(
        asset=asset, held_by__isnull=False, key__in=keys
    )
    return frozenset(held_partitions.values_list("key", flat=True))


def _used_by_others(asset: Asset, paths: Collection[str]) -> dict[str, str]:
    """Return by path which other asset has a partition, materialized or not, in the folder."""
    reasons: dict[str, str] = {}
    for other_asset in _overlapping_assets(asset):
        below = {
            path: _relative_folder(asset, other_asset, path)
            for path in paths
            if path not in reasons
        }
        inside = {path: folder for path, folder in below.items() if folder is not None}
        keys = [key for folder in inside.values() for key in possible_key_texts(folder)]
        rows = AssetPartition.objects.filter(asset=other_asset, key__in=keys)
        used_keys = set(
            rows.filter(Q(version__gt=0) | Q(held_by__isnull=False)).values_list("key", flat=True)
        )
        for path, folder in inside.items():
            if has_folder_of(other_asset.definition, folder) or used_keys & set(
                possible_key_texts(folder)
            ):
                reasons[path] = f"{other_asset.name} has a partition in its folder"
    return reasons


def _overlapping_assets(asset: Asset) -> list[Asset]:
    """Return the other assets whose location equals this asset's, lies inside, or contains it."""
    uri = asset.canonical_uri
    above = [uri[:position] for position, letter in enumerate(uri) if letter == "/"]
    other_assets = Asset.objects.select_related("partition_definition").exclude(pk=asset.pk)
    overlapping = Q(canonical_uri__in=[uri, *above]) | Q(canonical_uri__startswith=f"{uri}/")
    return list(other_assets.filter(overlapping).exclude(canonical_uri="").order_by("name"))


def _relative_folder(asset: Asset, other_asset: Asset, path: str) -> str | None:
    """Return a folder of the asset relative to another asset's location; None outside of that."""
    own_location, other_location = (
        unquote(urlsplit(each_asset.canonical_uri).path).strip("/")
        for each_asset in (asset, other_asset)
    )
    folder = own_location if path == UNPARTITIONED else f"{own_location}/{path}"
    if folder == other_location:
        return UNPARTITIONED
    return (
        folder.removeprefix(f"{other_location}/")
        if folder.startswith(f"{other_location}/")
        else None
    )

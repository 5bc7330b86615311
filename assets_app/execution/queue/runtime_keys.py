"""Locks of keys of runtime partitions, so that no key is removed while a run is being queued."""

from collections.abc import Collection, Mapping

from django.db import connection

from assets_app.models import Target
from slicewise import PartitionAtRuntime

# A removal locks the rows for an update, in the same order. The lock lets other transactions claim
# the keys, and add the keys once more.
_LOCK = """
SELECT key FROM partitions_app_runtimepartition
WHERE definition_id = %s AND key = ANY(%s) AND removed_at IS NULL
ORDER BY key FOR KEY SHARE
"""


def key_set_of(target: Target) -> int | None:
    """Return the id of the definition whose keys are found at run time; None for other targets."""
    row = target.asset.partition_definition
    is_found_at_runtime = row is not None and row.kind == PartitionAtRuntime.kind
    return row.pk if row and is_found_at_runtime and not target.is_discovering else None


def locked_keys(keys_by_set: Mapping[int, Collection[str]]) -> dict[int, set[str]]:
    """Lock keys until the transaction ends; return the keys that are not removed, by definition.

    A statement for each definition waits for removals of the keys.
    """
    present_keys: dict[int, set[str]] = {}
    with connection.cursor() as cursor:
        for definition_id, keys in sorted(keys_by_set.items()):
            cursor.execute(_LOCK, [definition_id, list(keys)])
            present_keys[definition_id] = {key for (key,) in cursor.fetchall()}
    return present_keys

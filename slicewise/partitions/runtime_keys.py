"""Runtime partitions, whose definitions list keys only in a snapshot that the caller provides."""

from collections.abc import Iterable
from typing import TypeGuard

from slicewise.errors import UnboundedPartitionsError
from slicewise.keys.product_key import WHOLE
from slicewise.partitions.by_sequence import PartitionAtRuntime
from slicewise.partitions.definition import PartitionDefinition

Definition = PartitionDefinition | None


def is_runtime(definition: Definition) -> TypeGuard[PartitionAtRuntime]:
    """Return whether the definition is one of runtime partitions."""
    return isinstance(definition, PartitionAtRuntime)


def lists_keys(definition: Definition) -> bool:
    """Return whether the keys are known; bounds of time may still be missing."""
    if not is_runtime(definition):
        return True
    try:
        return definition.values is not None
    except UnboundedPartitionsError:
        return False


def named_key(definition: Definition, value: object) -> object:
    """Return the key of a key text; keys and plain values of the definition are returned unchanged.

    None is the single key of an unpartitioned asset. Raises PartitionKeyError for a text that names
    no partition.
    """
    if definition is None:
        return WHOLE if value is None or value == "" else value
    if not isinstance(value, str) or not lists_keys(definition) or value in definition:
        return value
    return definition.parse(value)


def with_keys(definition: Definition, keys: Iterable[object]) -> Definition:
    """Return the definition, with these keys where keys are discovered and not listed."""
    return None if definition is None else definition.with_keys(keys)

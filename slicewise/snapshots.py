"""Sets found at run time, which list their keys only where somebody hands these in."""

from collections.abc import Iterable
from typing import TypeGuard

from slicewise.by_sequence import PartitionAtRuntime
from slicewise.definitions import PartitionDefinition
from slicewise.errors import UnboundedPartitionsError
from slicewise.keys import WHOLE

Definition = PartitionDefinition | None


def is_runtime(definition: Definition) -> TypeGuard[PartitionAtRuntime]:
    """Return whether the definition is of a set found at run time."""
    return isinstance(definition, PartitionAtRuntime)


def lists_keys(definition: Definition) -> bool:
    """Return whether it is known which keys there are; bounds of time may still be missing."""
    if not is_runtime(definition):
        return True
    try:
        return definition.values is not None
    except UnboundedPartitionsError:
        return False


def named_key(definition: Definition, value: object) -> object:
    """Return the key that a key text names; keys and plain values of the definition stay as
    they are.

    None is the one key of what is not partitioned. Raises PartitionKeyError for a text that names
    no partition.
    """
    if definition is None:
        return WHOLE if value is None or value == "" else value
    if not isinstance(value, str) or not lists_keys(definition) or value in definition:
        return value
    return definition.parse(value)


def with_keys(definition: Definition, keys: Iterable[object]) -> Definition:
    """Return the definition, with a snapshot of these keys if it is one that has none."""
    if not is_runtime(definition) or lists_keys(definition):
        return definition
    return definition.known(keys)

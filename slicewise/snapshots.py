"""Sets found at run time, which list their keys only where somebody hands these in."""

from collections.abc import Iterable
from typing import TypeGuard

from slicewise.by_sequence import PartitionAtRuntime
from slicewise.definitions import PartitionDefinition
from slicewise.errors import UnboundedPartitionsError

Definition = PartitionDefinition | None


def is_runtime(definition: Definition) -> TypeGuard[PartitionAtRuntime]:
    """Whether the definition is of a set found at run time."""
    return isinstance(definition, PartitionAtRuntime)


def lists_keys(definition: Definition) -> bool:
    """Whether it is known which keys there are; bounds of time may still be missing."""
    if not is_runtime(definition):
        return True
    try:
        return definition.values is not None
    except UnboundedPartitionsError:
        return False


def with_keys(definition: Definition, keys: Iterable[object]) -> Definition:
    """The definition, with a snapshot of these keys if it is one that has none."""
    if not is_runtime(definition) or lists_keys(definition):
        return definition
    return definition.known(keys)

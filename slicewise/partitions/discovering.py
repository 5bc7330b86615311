"""The way from a definition to the run that discovers partitions for the definition.

Modules of runs import definitions, so definitions cannot import modules of runs: a run's module
registers the function that adds a key.
"""

from collections.abc import Callable

from slicewise.keys.partition_key import PartitionKey
from slicewise.partitions.definition import PartitionDefinition

AddKey = Callable[[PartitionDefinition, object], PartitionKey]

_registered: list[AddKey] = []


def register_add_key(add_key: AddKey) -> None:
    """Register the function that adds a key to a set of runtime partitions for the present run."""
    _registered[:] = [add_key]


def add_key_for_run(definition: PartitionDefinition, key: object) -> PartitionKey:
    """Add a key for the present run; return the stored key.

    Raises RuntimeError outside of a run, PartitionKeyError for a value that cannot be a key.
    """
    (add_key,) = _registered
    return add_key(definition, key)

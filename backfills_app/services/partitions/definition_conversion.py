"""The same partitions by another definition: the definition in force, or a frozen one."""

import slicewise
from partitions_app.rules import identity_of
from slicewise.partitions import is_runtime

Definition = slicewise.PartitionDefinition | None


def by_definition(
    definition: Definition, partitions: slicewise.PartitionSet
) -> slicewise.PartitionSet:
    """Return the partitions that a definition has as well, as a set of that definition.

    Empty where the definition partitions differently: the same time under another key is another
    partition.
    """
    own_definition = partitions.definition
    if own_definition == definition:
        if not is_runtime(own_definition) or not is_runtime(definition):
            return partitions
        if own_definition.values.texts == definition.values.texts:
            return partitions
        existing = slicewise.PartitionSet.of(definition, definition.keys())
        return slicewise.PartitionSet.of(definition, partitions & existing)
    if identity_of(own_definition) != identity_of(definition):
        return slicewise.PartitionSet(definition, ())
    return slicewise.upstream_partitions(own_definition, definition, partitions)


def in_present_definition(
    present: Definition, partitions: slicewise.PartitionSet
) -> slicewise.PartitionSet:
    """Return the partitions of a set that the present definition has as well."""
    if is_runtime(present) and partitions.definition == present:
        # The set's definition may still have keys that were removed since.
        return partitions & slicewise.PartitionSet.of(present, present.keys())
    return by_definition(partitions.definition, by_definition(present, partitions))

"""The same partitions by another definition: the one in force, or one that was frozen."""

import slicewise
from assets_app.models import Asset
from partitions_app.rules import identity_of
from slicewise.snapshots import is_runtime

Definition = slicewise.PartitionDefinition | None


def by_definition(
    definition: Definition, partitions: slicewise.PartitionSet
) -> slicewise.PartitionSet:
    """Return the partitions that a definition has as well, as a set of that definition.

    Empty where it cuts otherwise: the same time under another key is another partition.
    """
    own = partitions.definition
    if own == definition:
        if not is_runtime(own) or not is_runtime(definition):
            return partitions
        if own.values.texts == definition.values.texts:
            return partitions
        there = slicewise.PartitionSet.of(definition, definition.keys())
        return slicewise.PartitionSet.of(definition, partitions & there)
    if identity_of(own) != identity_of(definition):
        return slicewise.PartitionSet(definition, ())
    return slicewise.upstream_partitions(own, definition, partitions)


def still_there(present: Definition, partitions: slicewise.PartitionSet) -> slicewise.PartitionSet:
    """Return the partitions of a set that the present definition has as well."""
    if is_runtime(present) and partitions.definition == present:
        # Keys that were removed are those of the set no more.
        return partitions & slicewise.PartitionSet.of(present, present.keys())
    return by_definition(partitions.definition, by_definition(present, partitions))


def current_part(asset: Asset, chosen: slicewise.PartitionSet) -> slicewise.PartitionSet:
    """Return the partitions, of a version's definition, that the asset has by the one in force."""
    return still_there(asset.definition, chosen)

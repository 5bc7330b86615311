"""The partitions that an output of an event names: by a facet, or by a folder in the name."""

from collections.abc import Iterator, Mapping
from typing import Any

import slicewise
from slicewise.partitions import dimension_names, folder_names, possible_key_texts
from slicewise.storage import partition_folder
from slicewise_server.lineage.asset_matching import MatchedAsset
from slicewise_server.lineage.facet_names import PARTITIONS
from slicewise_server.lineage.received_runs import ReceivedDataset


class PartitionsNotNamed(ValueError):
    """An output of a partitioned asset that does not say which partitions were written."""


class WrongPartitions(ValueError):
    """A facet that names partitions which the asset does not have."""


def named_selection(dataset: ReceivedDataset, matched: MatchedAsset) -> str:
    """Return the written partitions as a selection; empty for an asset without partitions.

    The facet `slicewise_partitions` comes first, then OpenLineage's facet `subset`, then the name.
    Raises PartitionsNotNamed, and WrongPartitions for a facet.
    """
    asset, folder = matched
    definition = asset.definition
    facet = dataset.facets.get(PARTITIONS)
    if facet is not None and facet.get("written") is False:
        raise PartitionsNotNamed("The facet says that the partitions are not written.")
    if definition is None:
        return ""
    if facet is not None and facet.get("selection"):
        return str(facet["selection"])
    subset = dataset.outputFacets.get("subset", {}).get("outputCondition")
    if subset is not None:
        return _of_condition(subset, matched, definition)
    if folder:
        key = _key_of_folder(folder, definition)
        if key is None:
            raise PartitionsNotNamed(f"{folder} is no partition of {asset.name}.")
        return _text([key], definition)
    raise PartitionsNotNamed(
        f"{asset.name} is partitioned, and the event names no partitions. Add the facet"
        f" `{PARTITIONS}` or `subset` to the output, or the folder of the partition to the name of"
        " the dataset."
    )


def _of_condition(
    condition: Mapping[str, Any],
    matched: MatchedAsset,
    definition: slicewise.PartitionDefinition,
) -> str:
    keys = []
    for folder in _folders(condition, matched, definition):
        key = _key_of_folder(folder, definition)
        if key is None:
            raise WrongPartitions(f"{folder} is no partition of {matched.asset.name}.")
        keys.append(key)
    if not keys:
        raise PartitionsNotNamed("The facet `subset` names no partitions.")
    return _text(keys, definition)


def _folders(
    condition: Mapping[str, Any],
    matched: MatchedAsset,
    definition: slicewise.PartitionDefinition,
) -> Iterator[str]:
    """Yield the folder of each partition of a condition, below the folder of the dataset."""
    if condition["type"] == "location":
        for location in condition["locations"]:
            named = [folder for folder in location.rstrip("/").split("/") if "=" in folder]
            yield "/".join(named)
        return
    if condition["type"] != "partition":
        raise PartitionsNotNamed(
            "Of the facet `subset`, conditions of the types `partition` and `location` are read."
        )
    names = dimension_names(definition)
    for partition in condition["partitions"]:
        values = partition["dimensions"]
        if set(values) != set(names):
            raise WrongPartitions(
                f"The partitions of {matched.asset.name} have the dimensions {', '.join(names)}."
            )
        yield partition_folder((name, str(values[name])) for name in names)


def _key_of_folder(
    folder: str, definition: slicewise.PartitionDefinition
) -> slicewise.PartitionKey | None:
    """Return the partition of a folder such as ``day=2024-01-01/airport=JFK``."""
    if folder_names(folder) != dimension_names(definition):
        return None
    for text in possible_key_texts(folder):
        try:
            return definition.parse(text)
        except ValueError:
            continue
    return None


def _text(keys: list[slicewise.PartitionKey], definition: slicewise.PartitionDefinition) -> str:
    return slicewise.PartitionSet.of(definition, keys).text

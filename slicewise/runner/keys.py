"""Keys and definitions in the messages of a worker."""

from collections.abc import Mapping, Sequence
from typing import Any

from slicewise.declaring.decorator import Asset
from slicewise.keys.key_json import key_from_json
from slicewise.keys.partition_key import PartitionKey
from slicewise.keys.product_key import WHOLE
from slicewise.partitions.definition import PartitionDefinition
from slicewise.runner.wire import Message


def read_key(definition: PartitionDefinition | None, content: Any) -> PartitionKey:
    """Return the key that a worker sent as a text or, if the text is
    ambiguous, as ``{"key": JSON}``.

    Texts are ambiguous for runtime partitions: the text ``1`` may stand for a number or for a text.
    Raises PartitionKeyError for a text that names no partition.
    """
    if definition is None:
        return WHOLE
    if isinstance(content, str):
        return definition.parse(content)
    return key_from_json(content["key"])


def read_definition(spec: Message | None, asset: Asset | None) -> PartitionDefinition | None:
    """Return the definition that a worker sent: the imported asset's own, if both are equal.

    Only the asset's own definition has the user's key classes; a definition from JSON has
    stand-ins.
    """
    if spec is None:
        return None
    definition = PartitionDefinition.from_json(spec)
    asset_definition = None if asset is None else asset.partition
    return asset_definition if asset_definition == definition else definition


def read_partitions(
    facts: Mapping[str, Any], asset: Asset | None
) -> tuple[PartitionDefinition | None, Sequence[PartitionKey]]:
    """Return (definition, keys) of an asset in a run."""
    definition = read_definition(facts["partition"], asset)
    return definition, [read_key(definition, content) for content in facts["partitions"]]

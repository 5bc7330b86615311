"""Keys and definitions as a worker sends them."""

from collections.abc import Mapping, Sequence
from typing import Any

from slicewise.assets import Asset
from slicewise.definitions import PartitionDefinition
from slicewise.key_json import key_from_json
from slicewise.keys import WHOLE, PartitionKey
from slicewise.runner.wire import Message


def read_key(definition: PartitionDefinition | None, content: Any) -> PartitionKey:
    """A key is sent as its text or, where a text does not say it all, as ``{"key": its JSON}``.

    That is so in sets found at run time: the text ``1`` may stand for a number or for a text.
    Raises PartitionKeyError for a text that names no partition.
    """
    if definition is None:
        return WHOLE
    if isinstance(content, str):
        return definition.parse(content)
    return key_from_json(content["key"])


def read_definition(spec: Message | None, asset: Asset | None) -> PartitionDefinition | None:
    """The definition that a worker sends: the imported asset's own, if it is still the same.

    The user's own classes of keys are known to that one only; from JSON come stand-ins.
    """
    if spec is None:
        return None
    definition = PartitionDefinition.from_json(spec)
    own = None if asset is None else asset.partition
    return own if own == definition else definition


def read_partitions(
    facts: Mapping[str, Any], asset: Asset | None
) -> tuple[PartitionDefinition | None, Sequence[PartitionKey]]:
    """The definition and the keys of an asset in a run."""
    definition = read_definition(facts["partition"], asset)
    return definition, [read_key(definition, content) for content in facts["partitions"]]

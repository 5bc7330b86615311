"""Partition keys in the form that runners get."""

from collections.abc import Iterable
from typing import Any

import slicewise
from slicewise.keys import key_to_json


def sent_keys(definition: slicewise.PartitionDefinition | None, texts: Iterable[str]) -> list[Any]:
    """Return keys for a runner: key texts, or whole keys of a set found at run time.

    A text does not determine a key of such a set. A key that was removed from the set is sent as
    its text.
    """
    if not isinstance(definition, slicewise.PartitionAtRuntime):
        return list(texts)
    return [_whole_key(definition, text) for text in texts]


def _whole_key(definition: slicewise.PartitionAtRuntime, text: str) -> Any:
    try:
        return {"key": key_to_json(definition.parse(text))}
    except slicewise.PartitionKeyError:
        return text

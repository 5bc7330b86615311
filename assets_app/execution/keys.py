"""Keys as runners are sent them."""

from collections.abc import Iterable
from typing import Any

import slicewise
from slicewise.key_json import key_to_json


def sent_keys(rule: slicewise.PartitionDefinition | None, texts: Iterable[str]) -> list[Any]:
    """Return key texts; of a set found at run time the keys themselves, which a text does not tell.

    A key that was removed from its set is sent as its text.
    """
    if not isinstance(rule, slicewise.PartitionAtRuntime):
        return list(texts)
    return [_whole(rule, text) for text in texts]


def _whole(rule: slicewise.PartitionAtRuntime, text: str) -> Any:
    try:
        return {"key": key_to_json(rule.parse(text))}
    except slicewise.PartitionKeyError:
        return text

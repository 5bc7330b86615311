"""Key texts of rows, which outlive the definition under which a row was created."""

from collections.abc import Iterable, Iterator

import slicewise
from slicewise.keys import WHOLE


def known_texts(
    definition: slicewise.PartitionDefinition | None, texts: Iterable[str]
) -> list[str]:
    """Return the texts of the keys that the definition still has; without one, all texts."""
    if definition is None:
        return list(texts)
    return [key.text for key in still_known(definition, texts)]


def known_partitions(
    definition: slicewise.PartitionDefinition | None, texts: Iterable[str]
) -> slicewise.PartitionSet:
    """Return the partitions of these texts, without the keys that the definition no longer has;
    without a definition, the one partition if there is a text.
    """
    if definition is None:
        return slicewise.PartitionSet.of(None, [WHOLE] if any(True for _ in texts) else [])
    return slicewise.PartitionSet.of(definition, still_known(definition, texts))


def still_known(
    definition: slicewise.PartitionDefinition, texts: Iterable[str]
) -> Iterator[slicewise.PartitionKey]:
    """Return the keys of these texts, without the keys that the definition no longer has."""
    for text in texts:
        try:
            yield definition.parse(text)
        except slicewise.PartitionKeyError:
            continue

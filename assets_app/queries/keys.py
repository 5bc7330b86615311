"""Key texts of rows, which outlive the definition under which a row was created."""

from collections.abc import Iterable, Iterator

import slicewise


def still_known(
    definition: slicewise.PartitionDefinition, texts: Iterable[str]
) -> Iterator[slicewise.PartitionKey]:
    """Return the keys of these texts, without the keys that the definition no longer has."""
    for text in texts:
        try:
            yield definition.parse(text)
        except slicewise.PartitionKeyError:
            continue

"""From partition keys to what names them in data: a text per dimension, and a folder."""

import os
from collections.abc import Sequence
from urllib.parse import unquote

from slicewise.definitions import PartitionDefinition
from slicewise.errors import PartitionKeyError
from slicewise.keys import PartitionKey, ProductKey
from slicewise.storage import partition_folder

_LONGEST_NAME_BYTES = 255


def dimension_names(definition: PartitionDefinition | None) -> list[str]:
    """The names of a definition's dimensions, in order; none for what is not partitioned."""
    return [] if definition is None else [dimension.name for dimension in definition.dimensions]


def key_parts(key: PartitionKey) -> Sequence[PartitionKey]:
    """The key of each dimension."""
    return key.parts if isinstance(key, ProductKey) else (key,)


def column_text(key: PartitionKey) -> str:
    """How the key of one dimension stands in a column and a folder: its text, not URL-encoded."""
    return unquote(key.text)


def key_folder(definition: PartitionDefinition | None, key: PartitionKey) -> str:
    """The folder of a partition, relative to its asset's."""
    names = dimension_names(definition)
    texts = [column_text(part) for part in key_parts(key)] if names else []
    return partition_folder(zip(names, texts, strict=True))


def refuse_long_folder(name: str, key: PartitionKey) -> None:
    """Raises PartitionKeyError for a key of one dimension whose folder no file system would take.

    Names of folders have at most 255 bytes on all of them that matter.
    """
    folder = partition_folder([(name, column_text(key))])
    size = len(os.fsencode(folder))
    if size > _LONGEST_NAME_BYTES:
        raise PartitionKeyError(
            f"the folder {folder[:50]}… of a partition would have a name of {size} bytes;"
            f" file systems take at most {_LONGEST_NAME_BYTES}: use a shorter key"
        )

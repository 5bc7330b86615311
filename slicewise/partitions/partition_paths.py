"""The names of partition keys in data: a text for each dimension, and a folder."""

import os
from collections.abc import Iterator, Sequence
from itertools import product
from urllib.parse import unquote

from slicewise.errors import PartitionKeyError
from slicewise.keys.partition_key import SEPARATOR, WHOLE, PartitionKey, ProductKey
from slicewise.keys.plain_values import escape
from slicewise.partitions.definition import PartitionDefinition
from slicewise.partitions.runtime_keys import lists_keys, named_key
from slicewise.storage import partition_folder
from slicewise.storage.layout import UNPARTITIONED, folder_texts

_LONGEST_NAME_BYTES = 255


def dimension_names(definition: PartitionDefinition | None) -> list[str]:
    """Return the names of a definition's dimensions, in order; no name without a definition."""
    return [] if definition is None else [dimension.name for dimension in definition.dimensions]


def dimension_keys(key: PartitionKey) -> Sequence[PartitionKey]:
    """Return the keys of the dimensions, in order."""
    return key.parts if isinstance(key, ProductKey) else (key,)


def column_text(key: PartitionKey) -> str:
    """Return the text of one dimension's key in columns and folders: not URL-encoded."""
    return unquote(key.text)


def key_folder(definition: PartitionDefinition | None, key: PartitionKey) -> str:
    """Return the folder of a partition, relative to the asset's folder."""
    names = dimension_names(definition)
    texts = [column_text(component) for component in dimension_keys(key)] if names else []
    return partition_folder(zip(names, texts, strict=True))


def partition_path(definition: PartitionDefinition | None, key: object) -> str:
    """Return the folder of a partition, relative to the asset's folder, for writers.

    ``key`` is a key text, a plain value or a key. Raises PartitionKeyError for a key that the
    definition does not have.
    """
    if definition is None:
        return ""
    value = named_key(definition, key)
    if lists_keys(definition) and value not in definition:
        raise PartitionKeyError(f"{key!r} is no partition of {definition!r}")
    return key_folder(definition, PartitionKey.of(value))


def folder_names(path: str) -> list[str]:
    """Return the names of the dimensions in a partition's folder, in order."""
    return [name for name, _ in folder_texts(path)]


def possible_key_texts(path: str) -> list[str]:
    """Return the key texts that a partition in this folder may have: some kinds of keys URL-encode
    texts, other kinds do not.
    """
    if path == UNPARTITIONED:
        return [WHOLE.text]
    spellings = [dict.fromkeys(_spellings(text)) for _, text in folder_texts(path)]
    return [SEPARATOR.join(texts) for texts in product(*spellings)]


def has_folder_of(definition: PartitionDefinition | None, path: str) -> bool:
    """Return whether the folder is that of a partition of the definition, materialized or not."""
    if definition is None:
        return path == UNPARTITIONED
    if path == UNPARTITIONED or folder_names(path) != dimension_names(definition):
        return False
    for text in possible_key_texts(path):
        try:
            if key_folder(definition, definition.parse(text)) == path:
                return True
        except PartitionKeyError:
            continue
    return False


def _spellings(text: str) -> Iterator[str]:
    yield text
    yield escape(text)


def refuse_long_folder(name: str, key: PartitionKey) -> None:
    """Raise PartitionKeyError for a key of one dimension with too long a folder name.

    All file systems that matter limit the name of a folder to 255 bytes.
    """
    folder = partition_folder([(name, column_text(key))])
    size = len(os.fsencode(folder))
    if size > _LONGEST_NAME_BYTES:
        raise PartitionKeyError(
            f"the folder {folder[:50]}… of a partition would have a name of {size} bytes;"
            f" file systems take at most {_LONGEST_NAME_BYTES}: use a shorter key"
        )

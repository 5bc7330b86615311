"""The names of partition keys in data: a text for each dimension, and a folder."""

from collections.abc import Iterator
from itertools import product

from slicewise.errors import PartitionKeyError
from slicewise.keys.column_texts import column_text, dimension_keys
from slicewise.keys.partition_key import PartitionKey
from slicewise.keys.product_key import SEPARATOR, WHOLE
from slicewise.keys.value_texts import escape
from slicewise.partitions.definition import PartitionDefinition
from slicewise.partitions.runtime_keys import lists_keys, named_key
from slicewise.storage import partition_folder
from slicewise.storage.layout import UNPARTITIONED, folder_texts


def dimension_names(definition: PartitionDefinition | None) -> list[str]:
    """Return the names of a definition's dimensions, in order; no name without a definition."""
    return [] if definition is None else [dimension.name for dimension in definition.dimensions]


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

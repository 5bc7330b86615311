"""From partition keys to what names them in data: a text per dimension, and a folder."""

import os
from collections.abc import Iterator, Sequence
from itertools import product
from urllib.parse import unquote

from slicewise.definitions import PartitionDefinition
from slicewise.errors import PartitionKeyError
from slicewise.keys import SEPARATOR, WHOLE, PartitionKey, ProductKey
from slicewise.plain_values import escape
from slicewise.snapshots import lists_keys, named_key
from slicewise.storage import partition_folder
from slicewise.storage.layout import UNPARTITIONED, folder_texts

_LONGEST_NAME_BYTES = 255


def dimension_names(definition: PartitionDefinition | None) -> list[str]:
    """Return the names of a definition's dimensions, in order; none for what is not partitioned."""
    return [] if definition is None else [dimension.name for dimension in definition.dimensions]


def key_parts(key: PartitionKey) -> Sequence[PartitionKey]:
    """Return the key of each dimension."""
    return key.parts if isinstance(key, ProductKey) else (key,)


def column_text(key: PartitionKey) -> str:
    """How the key of one dimension stands in a column and a folder: its text, not URL-encoded."""
    return unquote(key.text)


def key_folder(definition: PartitionDefinition | None, key: PartitionKey) -> str:
    """Return the folder of a partition, relative to its asset's."""
    names = dimension_names(definition)
    texts = [column_text(part) for part in key_parts(key)] if names else []
    return partition_folder(zip(names, texts, strict=True))


def partition_path(definition: PartitionDefinition | None, key: object) -> str:
    """Return the folder of a partition, relative to its asset's, as writers have to call it.

    ``key`` is a key text, a plain value or a key. Raises PartitionKeyError for one that the
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


def folder_keys(path: str) -> list[str]:
    """Return the key texts that a partition in this folder may have: texts are URL-encoded in some
    kinds of keys and not in others.
    """
    if path == UNPARTITIONED:
        return [WHOLE.text]
    spellings = [dict.fromkeys(_spellings(text)) for _, text in folder_texts(path)]
    return [SEPARATOR.join(texts) for texts in product(*spellings)]


def defines_folder(definition: PartitionDefinition | None, path: str) -> bool:
    """Return whether a partition of the definition, made or not, lies in this folder."""
    if definition is None:
        return path == UNPARTITIONED
    if path == UNPARTITIONED or folder_names(path) != dimension_names(definition):
        return False
    for text in folder_keys(path):
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
    """Raise PartitionKeyError for a key of one dimension whose folder no file system would take.

    Names of folders have at most 255 bytes on all of them that matter.
    """
    folder = partition_folder([(name, column_text(key))])
    size = len(os.fsencode(folder))
    if size > _LONGEST_NAME_BYTES:
        raise PartitionKeyError(
            f"the folder {folder[:50]}… of a partition would have a name of {size} bytes;"
            f" file systems take at most {_LONGEST_NAME_BYTES}: use a shorter key"
        )

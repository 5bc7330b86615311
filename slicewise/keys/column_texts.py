"""The texts of a key in data: a text for each dimension, in a column and in a folder's name."""

import os
from collections.abc import Sequence
from urllib.parse import unquote

from slicewise.errors import PartitionKeyError
from slicewise.keys.partition_key import PartitionKey
from slicewise.keys.product_key import ProductKey
from slicewise.storage import partition_folder

_LONGEST_NAME_BYTES = 255


def dimension_keys(key: PartitionKey) -> Sequence[PartitionKey]:
    """Return the keys of the dimensions, in order."""
    return key.parts if isinstance(key, ProductKey) else (key,)


def column_text(key: PartitionKey) -> str:
    """Return the text of one dimension's key in columns and folders: not URL-encoded."""
    return unquote(key.text)


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

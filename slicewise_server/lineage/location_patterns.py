"""Locations with dimensions in braces, one dataset for each partition: ``orders_{day:%Y%m%d}``."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from assets_app.models import Asset
from slicewise import openlineage_name
from slicewise.partitions import dimension_names
from slicewise.storage import partition_folder

_BRACES = re.compile(r"\{(?P<name>[^{}:]+)(?::(?P<format>[^{}]+))?\}")
ENCODED_BRACE = "%7B"
"""The beginning of a dimension in a canonical URI."""


class _Dimension(NamedTuple):
    name: str
    format: str | None


class LocationPattern:
    """The names of the datasets of one asset, whose location has all dimensions in braces."""

    def __init__(self, asset: Asset) -> None:
        self.asset = asset
        self.namespace, name = openlineage_name(asset.canonical_uri)
        self._dimensions = [_Dimension(*match.groups()) for match in _BRACES.finditer(name)]
        self._between = _BRACES.sub("\0", name).split("\0")

    def folder_of(self, name: str) -> str | None:
        """Return the folder of the partition that a dataset's name names; None for no match.

        The folder is ``name=key`` for each dimension, in the order of the definition.
        """
        texts = self._texts(name)
        if texts is None:
            return None
        keys = dict(self._keys(texts))
        names = dimension_names(self.asset.definition)
        if set(keys) != set(names):
            return None
        return partition_folder((dimension, keys[dimension]) for dimension in names)

    def _texts(self, name: str) -> list[str] | None:
        """Return the texts in place of the dimensions, each as short as can be; None for no match.

        An expression with several wildcards would try each division of a name of slashes.
        """
        first, *inner, last = self._between
        end = len(name) - len(last)
        if not (name.startswith(first) and name.endswith(last)):
            return None
        texts, begin = [], len(first)
        for text in inner:
            at = name.find(text, begin + 1, end)
            if at < 0:
                return None
            texts.append(name[begin:at])
            begin = at + len(text)
        return [*texts, name[begin:end]] if begin < end else None

    def _keys(self, texts: list[str]) -> Iterator[tuple[str, str]]:
        for dimension, text in zip(self._dimensions, texts, strict=True):
            key = text if dimension.format is None else self._window(text, dimension.format)
            if key is not None:
                yield dimension.name, key

    def _window(self, text: str, time_format: str) -> str | None:
        """Return the window at a written time, in the zone of the asset; None without a window."""
        definition = self.asset.definition
        time = None if definition is None else definition.time_dimension
        if time is None:
            return None
        try:
            window = time.window_at(datetime.strptime(text, time_format))
        except ValueError:
            return None
        return None if window is None else str(window)

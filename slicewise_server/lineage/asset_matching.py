"""From datasets of events to assets: by location, by folders of partitions, by name."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from django.conf import settings

from assets_app.models import Asset
from slicewise import openlineage_uri
from slicewise_server.lineage.location_patterns import ENCODED_BRACE, LocationPattern
from slicewise_server.lineage.received_runs import ReceivedDataset

# More folders of partitions than this below a location are of no asset: each folder is one more
# location to look for.
_MOST_FOLDERS = 20


class MatchedAsset(NamedTuple):
    """An asset of a dataset: ``folder`` is the rest of the location, such as
    ``day=2024-01-01``, and empty for the whole dataset.
    """

    asset: Asset
    folder: str


class AssetMatcher:
    """The declared assets among the datasets of a request: three statements for all datasets."""

    def __init__(self, datasets: Iterable[ReceivedDataset]) -> None:
        own_names = set()
        # A location is named again and again, and takes a while to find.
        self._locations: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for dataset in datasets:
            own_names |= set(_own_names(dataset))
            for names in dataset.names:
                if names not in self._locations:
                    self._locations[names] = list(_locations(*names))
        locations = {location for named in self._locations.values() for location, _folder in named}
        declared = Asset.objects.declared().order_by("pk")
        self._by_location: dict[str, list[Asset]] = {}
        for asset in declared.filter(canonical_uri__in=locations).exclude(canonical_uri=""):
            self._by_location.setdefault(asset.canonical_uri, []).append(asset)
        without_location = declared.filter(name__in=own_names, canonical_uri="")
        self._by_name = {asset.name: asset for asset in without_location}
        with_braces = declared.filter(producer=None, canonical_uri__contains=ENCODED_BRACE)
        self._patterns: dict[str, list[LocationPattern]] = {}
        for pattern in map(LocationPattern, with_braces):
            self._patterns.setdefault(pattern.namespace, []).append(pattern)

    def matches(self, dataset: ReceivedDataset) -> list[MatchedAsset]:
        """Return the assets of a dataset, the nearest location first; each asset once."""
        matched: dict[int, MatchedAsset] = {}
        for names in dataset.names:
            for location, folder in self._locations[names]:
                for asset in self._by_location.get(location, ()):
                    matched.setdefault(asset.pk, MatchedAsset(asset, folder))
        for namespace, name in dataset.names:
            for pattern in self._patterns.get(namespace, ()):
                if (named_folder := pattern.folder_of(name)) is not None:
                    matched.setdefault(pattern.asset.pk, MatchedAsset(pattern.asset, named_folder))
        for name in _own_names(dataset):
            if asset_by_name := self._by_name.get(name):
                matched.setdefault(asset_by_name.pk, MatchedAsset(asset_by_name, ""))
        return list(matched.values())


def _locations(namespace: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield each location that may be an asset's, with the folder of a partition below it.

    Folders of partitions are named ``name=value``.
    """
    folders: list[str] = []
    rest = name.rstrip("/")
    while len(folders) <= _MOST_FOLDERS:
        if uri := openlineage_uri(namespace, rest):
            yield uri, "/".join(folders)
        rest, slash, last = rest.rpartition("/")
        if not slash or "=" not in last:
            break
        folders.insert(0, last)


def _own_names(dataset: ReceivedDataset) -> Iterator[str]:
    """Yield the names of assets that have no location."""
    for namespace, name in dataset.names:
        if namespace == settings.OPENLINEAGE_NAMESPACE:
            yield name

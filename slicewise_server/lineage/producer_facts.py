"""Facts of code and catalogue that the events of a group share."""

from collections.abc import Mapping, Sequence
from functools import cached_property

import slicewise
from assets_app.models import Asset, ProducerVersion
from slicewise.declaring import OutletSpec, ProducerSpec
from slicewise_server.lineage.dataset_facts import DatasetFacts, facts_of_asset
from slicewise_server.lineage.job_facets import JobFacets, job_facets


class SharedFacts:
    """The facts of the assets and versions of a group, each computed once."""

    def __init__(self, assets: Mapping[str, Asset]) -> None:
        self.assets = assets
        self._datasets: dict[str, DatasetFacts] = {}
        self._producers: dict[int, ProducerFacts] = {}

    def of_asset(self, name: str) -> DatasetFacts:
        """Return the facts of an asset of the group."""
        if name not in self._datasets:
            self._datasets[name] = facts_of_asset(self.assets[name])
        return self._datasets[name]

    def of_version(self, version: ProducerVersion) -> "ProducerFacts":
        """Return the facts of the code of an attempt."""
        if version.pk not in self._producers:
            self._producers[version.pk] = ProducerFacts(version, self.assets)
        return self._producers[version.pk]


class ProducerFacts:
    """The facts of one version of a producer. Each property raises an exception where the
    declaration cannot be read.
    """

    def __init__(self, version: ProducerVersion, assets: Mapping[str, Asset]) -> None:
        self._version, self._assets = version, assets

    @property
    def spec(self) -> ProducerSpec:
        """The declaration."""
        return self._version.spec

    @cached_property
    def outlets(self) -> Sequence[DatasetFacts]:
        """The outlets as the code declares the outlets."""
        uris = self._version.canonical_uris
        return [self._outlet(outlet, uris[outlet.name]) for outlet in self.spec.outlets]

    @cached_property
    def job_name(self) -> str:
        """The asset; for several assets of one function, the name of the function."""
        return self.outlets[0].asset if len(self.outlets) == 1 else self.spec.name

    @cached_property
    def job_facets(self) -> JobFacets:
        """The facets of the job, by name."""
        return job_facets(self.spec, self._version.source)

    def definition_of(self, asset: str) -> slicewise.PartitionDefinition | None:
        """Return the partition definition of an outlet; None without partitions."""
        definitions = {outlet.asset: outlet.definition for outlet in self.outlets}
        if asset in definitions:
            return definitions[asset]
        return self._version.definition_of(asset)

    def _outlet(self, outlet: OutletSpec, canonical_uri: str) -> DatasetFacts:
        spec, asset = self.spec, self._assets.get(outlet.name)
        return DatasetFacts(
            asset=outlet.name,
            canonical_uri=canonical_uri or (asset.canonical_uri if asset else ""),
            definition=self._version.definition_of(outlet.name),
            columns=outlet.columns or (),
            owners=outlet.owners or spec.owners,
            tags=outlet.tags or spec.tags,
            description=outlet.description or spec.description,
        )

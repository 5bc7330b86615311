"""Facts of datasets that are the same for many attempts, and the facets that tell these facts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.conf import settings
from openlineage.client import facet_v2
from openlineage.client.facet_v2 import (
    datasource_dataset,
    documentation_dataset,
    ownership_dataset,
    schema_dataset,
    tags_dataset,
)

import slicewise
from assets_app.models import Asset
from slicewise_server.lineage.dataset_names import dataset_name

_PRODUCER = "urn:slicewise"
TAG_SOURCE = "SLICEWISE"


def producer() -> str:
    """Return the URI of the producer of events: SLICEWISE_URL, or a name."""
    return settings.SLICEWISE_URL or _PRODUCER


@dataclass(frozen=True, kw_only=True)
class DatasetFacts:
    """The catalogue's facts of a dataset. The events of a group share the facts, so that facets are
    built once for a group.
    """

    asset: str
    canonical_uri: str
    definition: slicewise.PartitionDefinition | None
    columns: Sequence[Mapping[str, Any]]
    owners: Sequence[str]
    tags: Sequence[str]
    description: str

    @cached_property
    def name(self) -> tuple[str, str]:
        """OpenLineage's (namespace, name) of the dataset."""
        return dataset_name(self.asset, self.canonical_uri)

    @cached_property
    def definition_json(self) -> dict[str, Any] | None:
        """The JSON of the partition definition; None without partitions."""
        return None if self.definition is None else self.definition.to_json()

    @cached_property
    def facets(self) -> Mapping[str, facet_v2.DatasetFacet]:
        """The facets that depend on no attempt, by name."""
        facets: dict[str, facet_v2.DatasetFacet | None] = {
            "dataSource": self._data_source(),
            "schema": self._schema(),
            "documentation": self._documentation(),
            "ownership": self._ownership(),
            "tags": self._tags(),
        }
        return {name: facet for name, facet in facets.items() if facet is not None}

    def _data_source(self) -> facet_v2.DatasetFacet | None:
        if not self.canonical_uri:
            return None
        return datasource_dataset.DatasourceDatasetFacet(
            name=self.name[0], uri=self.canonical_uri, producer=producer()
        )

    def _schema(self) -> facet_v2.DatasetFacet | None:
        if not self.columns:
            return None
        return schema_dataset.SchemaDatasetFacet(
            fields=[
                schema_dataset.SchemaDatasetFacetFields(
                    name=column["name"], type=column.get("type")
                )
                for column in self.columns
            ],
            producer=producer(),
        )

    def _documentation(self) -> facet_v2.DatasetFacet | None:
        if not self.description:
            return None
        return documentation_dataset.DocumentationDatasetFacet(
            description=self.description, producer=producer()
        )

    def _ownership(self) -> facet_v2.DatasetFacet | None:
        if not self.owners:
            return None
        return ownership_dataset.OwnershipDatasetFacet(
            owners=[ownership_dataset.Owner(name=owner) for owner in self.owners],
            producer=producer(),
        )

    def _tags(self) -> facet_v2.DatasetFacet | None:
        if not self.tags:
            return None
        return tags_dataset.TagsDatasetFacet(
            tags=[
                tags_dataset.TagsDatasetFacetFields(key=tag, value="true", source=TAG_SOURCE)
                for tag in self.tags
            ],
            producer=producer(),
        )


def facts_of_asset(asset: Asset) -> DatasetFacts:
    """Return the facts of an asset as the catalogue has the asset now."""
    return DatasetFacts(
        asset=asset.name,
        canonical_uri=asset.canonical_uri,
        definition=asset.definition,
        columns=asset.columns or (),
        owners=asset.owners,
        tags=asset.tags,
        description=asset.description,
    )

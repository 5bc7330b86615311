"""Datasets of events: names, and facets with the catalogue's facts and the results of attempts."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from django.conf import settings
from openlineage.client import facet_v2
from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import (
    data_quality_assertions_dataset,
    dataset_version_dataset,
    datasource_dataset,
    documentation_dataset,
    output_statistics_output_dataset,
    ownership_dataset,
    schema_dataset,
    tags_dataset,
)

from assets_app.models import ValidationResult
from slicewise.texts import masked_text
from slicewise_server.lineage.attempt_record import DatasetFacts, UsedDataset
from slicewise_server.lineage.attempt_rows import UsedPartitions
from slicewise_server.lineage.dataset_names import dataset_name
from slicewise_server.lineage.facet_names import PARTITIONS
from slicewise_server.lineage.partitions_facet import input_partitions, output_partitions

_PRODUCER = "urn:slicewise"
TAG_SOURCE = "SLICEWISE"


def producer() -> str:
    """Return the URI of the producer of events: SLICEWISE_URL, or a name."""
    return settings.SLICEWISE_URL or _PRODUCER


def input_dataset(used: UsedDataset) -> InputDataset:
    """Return an input of an event."""
    namespace, name = dataset_name(used.facts.asset, used.facts.canonical_uri)
    facets = _dataset_facets(used) | {PARTITIONS: input_partitions(used)}
    quality = _assertions(used.validations)
    return InputDataset(
        namespace=namespace,
        name=name,
        facets=facets,
        inputFacets={} if quality is None else {"dataQualityAssertions": quality},
    )


def output_dataset(used: UsedDataset) -> OutputDataset:
    """Return an output of an event."""
    namespace, name = dataset_name(used.facts.asset, used.facts.canonical_uri)
    # OpenLineage has assertions for inputs. On an output the same facet is among those of the
    # dataset, which may have any.
    facets: dict[str, Any] = _dataset_facets(used) | {PARTITIONS: output_partitions(used)}
    if (quality := _assertions(used.validations)) is not None:
        facets["dataQualityAssertions"] = quality
    return OutputDataset(
        namespace=namespace, name=name, facets=facets, outputFacets=_statistics(used.partitions)
    )


def _statistics(partitions: UsedPartitions) -> dict[str, facet_v2.OutputDatasetFacet]:
    if partitions.rows is None and partitions.bytes is None:
        return {}
    return {
        "outputStatistics": output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            rowCount=partitions.rows, size=partitions.bytes, producer=producer()
        )
    }


def _dataset_facets(used: UsedDataset) -> dict[str, facet_v2.DatasetFacet]:
    facts = used.facts
    facets: dict[str, facet_v2.DatasetFacet | None] = {
        "dataSource": _data_source(facts),
        "schema": _schema(facts.columns),
        "version": _version(used.partitions.versions),
        "documentation": documentation_dataset.DocumentationDatasetFacet(
            description=facts.description, producer=producer()
        )
        if facts.description
        else None,
        "ownership": ownership_dataset.OwnershipDatasetFacet(
            owners=[ownership_dataset.Owner(name=owner) for owner in facts.owners],
            producer=producer(),
        )
        if facts.owners
        else None,
        "tags": tags_dataset.TagsDatasetFacet(
            tags=[
                tags_dataset.TagsDatasetFacetFields(key=tag, value="true", source=TAG_SOURCE)
                for tag in facts.tags
            ],
            producer=producer(),
        )
        if facts.tags
        else None,
    }
    return {name: facet for name, facet in facets.items() if facet is not None}


def _data_source(facts: DatasetFacts) -> facet_v2.DatasetFacet | None:
    if not facts.canonical_uri:
        return None
    namespace, _ = dataset_name(facts.asset, facts.canonical_uri)
    return datasource_dataset.DatasourceDatasetFacet(
        name=namespace, uri=facts.canonical_uri, producer=producer()
    )


def _schema(columns: Sequence[Mapping[str, Any]]) -> facet_v2.DatasetFacet | None:
    if not columns:
        return None
    return schema_dataset.SchemaDatasetFacet(
        fields=[
            schema_dataset.SchemaDatasetFacetFields(name=column["name"], type=column.get("type"))
            for column in columns
        ],
        producer=producer(),
    )


def _version(versions: Mapping[str, int] | None) -> facet_v2.DatasetFacet | None:
    """Return the version of a single partition, or a text that is the same for the same versions
    of the same partitions.
    """
    if not versions:
        return None
    if len(versions) == 1:
        text = str(next(iter(versions.values())))
    else:
        pairs = "\n".join(f"{key}\t{version}" for key, version in sorted(versions.items()))
        text = sha256(pairs.encode()).hexdigest()[:32]
    return dataset_version_dataset.DatasetVersionDatasetFacet(
        datasetVersion=text, producer=producer()
    )


def _assertions(
    results: Sequence[ValidationResult],
) -> data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet | None:
    if not results:
        return None
    return data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(
        assertions=[
            data_quality_assertions_dataset.Assertion(
                assertion=result.name,
                success=result.passed,
                severity=result.severity,
                name=result.name,
                description=result.description or None,
                actual=masked_text(result.message) or None,
            )
            for result in results
        ],
        producer=producer(),
    )

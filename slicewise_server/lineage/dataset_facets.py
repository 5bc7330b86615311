"""Datasets of events: names, the catalogue's facets, and facets with the results of attempts."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from openlineage.client import facet_v2
from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import (
    data_quality_assertions_dataset,
    dataset_version_dataset,
    output_statistics_output_dataset,
)

from assets_app.models import ValidationResult
from slicewise.texts import masked_text
from slicewise_server.lineage.attempt_record import UsedDataset
from slicewise_server.lineage.attempt_rows import UsedPartitions
from slicewise_server.lineage.dataset_facts import producer
from slicewise_server.lineage.facet_names import PARTITIONS
from slicewise_server.lineage.partitions_facet import input_partitions, output_partitions


def input_dataset(used: UsedDataset) -> InputDataset:
    """Return an input of an event."""
    namespace, name = used.facts.name
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
    namespace, name = used.facts.name
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
    version = _version(used.partitions.versions)
    return {**used.facts.facets} if version is None else {**used.facts.facets, "version": version}


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

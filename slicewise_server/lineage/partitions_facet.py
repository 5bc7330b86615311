"""The facet by which events name partitions: definition, keys, versions and mapping.

The JSON schema is ``docs/reference/openlineage/PartitionsDatasetFacet.json``.
"""

from typing import Any

import attr
from openlineage.client.facet_v2 import DatasetFacet

import slicewise
from slicewise_server.lineage.attempt_record import UsedDataset
from slicewise_server.lineage.facet_names import PARTITIONS_SCHEMA

_LONGEST_SELECTION = 200_000
_MOST_VERSIONS = 1_000


@attr.define
class PartitionsDatasetFacet(DatasetFacet):
    """The partitions of a dataset that a run has read, has written, or is to write."""

    asset: str
    partitionCount: int
    selection: str | None = None
    definition: dict[str, Any] | None = None
    mapping: dict[str, Any] | None = None
    versions: dict[str, int] | None = None
    # Of an output: whether the partitions are written; otherwise the run is to write them.
    written: bool | None = None
    # Of an input: whether the function reads the asset, and whether the asset schedules it.
    inlet: bool | None = None
    scheduling: bool | None = None

    @staticmethod
    def _get_schema() -> str:
        return PARTITIONS_SCHEMA


def input_partitions(used: UsedDataset) -> PartitionsDatasetFacet:
    """Return the facet of an input."""
    facet = _partitions(used)
    facet.mapping = None if used.mapping is None else dict(used.mapping)
    facet.inlet, facet.scheduling = used.is_inlet, used.is_scheduling
    return facet


def output_partitions(used: UsedDataset) -> PartitionsDatasetFacet:
    """Return the facet of an output."""
    facet = _partitions(used)
    facet.written = used.partitions.versions is not None
    return facet


def _partitions(used: UsedDataset) -> PartitionsDatasetFacet:
    versions = used.partitions.versions
    return PartitionsDatasetFacet(
        asset=used.facts.asset,
        partitionCount=used.partitions.count,
        selection=_selection(used),
        definition=used.facts.definition_json,
        versions=dict(versions) if versions and len(versions) <= _MOST_VERSIONS else None,
    )


def _selection(used: UsedDataset) -> str | None:
    """Return the partitions in the grammar of selections.

    None where there are too many, and where the present definition no longer has one of the keys.
    """
    definition, keys = used.facts.definition, used.partitions.keys
    if definition is None or len(keys) < used.partitions.count:
        return None
    try:
        text = slicewise.PartitionSet.of(definition, map(definition.parse, keys)).text
    except ValueError:
        return None
    return text if len(text) <= _LONGEST_SELECTION else None

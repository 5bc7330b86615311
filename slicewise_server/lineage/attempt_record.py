"""The facts that events tell of an attempt: datasets with partitions.

Everything comes from rows that do not change once the attempt has ended, so that an event that is
sent twice says the same twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import slicewise
from assets_app.models import Asset, ProducerVersion, RunAttempt, ValidationResult
from backfills_app.models import Backfill
from slicewise.declaring import OutletSpec
from slicewise_server.lineage.attempt_rows import AttemptRows, PartitionsByAsset, UsedPartitions

NO_PARTITIONS = UsedPartitions()


class DatasetFacts(NamedTuple):
    """The catalogue's facts of a dataset."""

    asset: str
    canonical_uri: str
    definition: slicewise.PartitionDefinition | None
    columns: Sequence[Mapping[str, Any]]
    owners: Sequence[str]
    tags: Sequence[str]
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedDataset:
    """A dataset of an attempt, and its role for the function."""

    facts: DatasetFacts
    partitions: UsedPartitions = NO_PARTITIONS
    mapping: Mapping[str, Any] | None = None
    is_inlet: bool = False
    is_scheduling: bool = False
    validations: Sequence[ValidationResult] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """An attempt with its datasets."""

    attempt: RunAttempt
    backfill: Backfill | None
    inputs: Sequence[UsedDataset]
    outputs: Sequence[UsedDataset]
    # The partitions that the run was to write, for the time that the run is about.
    planned: UsedDataset

    @property
    def version(self) -> ProducerVersion:
        """The code of the attempt."""
        return self.attempt.run.producer_version


def record_of(rows: AttemptRows) -> AttemptRecord:
    """Return the facts of an attempt: once the attempt has ended, with the partitions that the
    attempt has read and written.
    """
    attempt, assets = rows.attempt, rows.assets
    spec = attempt.run.producer_version.spec
    outputs = [
        UsedDataset(
            facts=_declared_facts(attempt.run.producer_version, outlet, assets.get(outlet.name)),
            partitions=_of(outlet.name, assets, rows.written)
            or _of(outlet.name, assets, rows.planned)
            or NO_PARTITIONS,
            validations=_validations_of(outlet.name, rows, ValidationResult.When.OUTLET),
        )
        for outlet in spec.outlets
    ]
    inputs = [
        UsedDataset(
            facts=_catalogue_facts(assets[name]),
            partitions=_of(name, assets, rows.read) or NO_PARTITIONS,
            mapping=spec.mappings.get(name),
            is_inlet=name in spec.inlets,
            is_scheduling=name in spec.scheduling_names,
            validations=_validations_of(name, rows, ValidationResult.When.INLET),
        )
        for name in spec.upstream_names
        if name in assets
    ]
    return AttemptRecord(
        attempt=attempt,
        backfill=rows.backfill,
        inputs=inputs,
        outputs=outputs,
        planned=UsedDataset(
            facts=_catalogue_facts(attempt.run.asset)._replace(
                definition=attempt.run.producer_version.definition_of(attempt.run.asset.name)
            ),
            partitions=rows.planned.get(attempt.run.asset_id, NO_PARTITIONS),
        ),
    )


def _of(name: str, assets: Mapping[str, Asset], used: PartitionsByAsset) -> UsedPartitions | None:
    return used.get(assets[name].pk) if name in assets else None


def _validations_of(name: str, rows: AttemptRows, when: str) -> list[ValidationResult]:
    asset = rows.assets.get(name)
    return [
        result
        for result in rows.validations
        if asset and result.asset_id == asset.pk and result.when == when
    ]


def _declared_facts(
    version: ProducerVersion, outlet: OutletSpec, asset: Asset | None
) -> DatasetFacts:
    """Return the facts of an outlet as the attempt's code declares the outlet."""
    spec = version.spec
    uri = version.canonical_uris[outlet.name] if outlet.uri else ""
    return DatasetFacts(
        asset=outlet.name,
        canonical_uri=uri or (asset.canonical_uri if asset else ""),
        definition=version.definition_of(outlet.name),
        columns=outlet.columns or (),
        owners=outlet.owners or spec.owners,
        tags=outlet.tags or spec.tags,
        description=outlet.description or spec.description,
    )


def _catalogue_facts(asset: Asset) -> DatasetFacts:
    return DatasetFacts(
        asset=asset.name,
        canonical_uri=asset.canonical_uri,
        definition=asset.definition,
        columns=asset.columns or (),
        owners=asset.owners,
        tags=asset.tags,
        description=asset.description,
    )

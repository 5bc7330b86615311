"""The facts that events tell of an attempt: datasets with partitions.

Everything comes from rows that do not change once the attempt has ended, so that an event that is
sent twice says the same twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import slicewise
from assets_app.models import RunAttempt, ValidationResult
from backfills_app.models import Backfill
from slicewise_server.lineage.attempt_rows import AttemptRows, PartitionsByAsset, UsedPartitions
from slicewise_server.lineage.dataset_facts import DatasetFacts
from slicewise_server.lineage.producer_facts import ProducerFacts

NO_PARTITIONS = UsedPartitions()


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
    producer: ProducerFacts
    inputs: Sequence[UsedDataset]
    outputs: Sequence[UsedDataset]
    # The partitions that the run was to write, for the time that the run is about.
    planned: UsedPartitions
    planned_definition: slicewise.PartitionDefinition | None


def record_of(rows: AttemptRows) -> AttemptRecord:
    """Return the facts of an attempt: once the attempt has ended, with the partitions that the
    attempt has read and written.
    """
    run, shared = rows.attempt.run, rows.shared
    producer = shared.of_version(run.producer_version)
    spec = producer.spec
    outputs = [
        UsedDataset(
            facts=facts,
            partitions=_of(facts.asset, rows, rows.written)
            or _of(facts.asset, rows, rows.planned)
            or NO_PARTITIONS,
            validations=_validations_of(facts.asset, rows, ValidationResult.When.OUTLET),
        )
        for facts in producer.outlets
    ]
    inputs = [
        UsedDataset(
            facts=shared.of_asset(name),
            partitions=_of(name, rows, rows.read) or NO_PARTITIONS,
            mapping=spec.mappings.get(name),
            is_inlet=name in spec.inlets,
            is_scheduling=name in spec.scheduling_names,
            validations=_validations_of(name, rows, ValidationResult.When.INLET),
        )
        for name in spec.upstream_names
        if name in shared.assets
    ]
    return AttemptRecord(
        attempt=rows.attempt,
        backfill=rows.backfill,
        producer=producer,
        inputs=inputs,
        outputs=outputs,
        planned=rows.planned.get(run.asset_id, NO_PARTITIONS),
        planned_definition=producer.definition_of(run.asset.name),
    )


def _of(name: str, rows: AttemptRows, used: PartitionsByAsset) -> UsedPartitions | None:
    asset = rows.shared.assets.get(name)
    return None if asset is None else used.get(asset.pk)


def _validations_of(name: str, rows: AttemptRows, when: str) -> list[ValidationResult]:
    if not rows.validations:
        return []
    asset = rows.shared.assets.get(name)
    return [
        result
        for result in rows.validations
        if asset and result.asset_id == asset.pk and result.when == when
    ]

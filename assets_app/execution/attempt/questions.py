"""Answers to the questions of runners, read from the database."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from assets_app.execution.attempt.attempts import Attempt
from assets_app.execution.attempt.frozen import as_frozen, frozen_definitions
from assets_app.execution.attempt.past_partitions import PastPartitions
from assets_app.execution.data.recorded import records_of
from assets_app.models import Asset, AssetPartition
from partitions_app.models import PartitionDefinition
from slicewise.runner.partition_records import PRESENT, RECORDED
from slicewise_server.web.storable import is_storable


class Questions:
    """The answers to an attempt's messages ``ask``, checked since user code shares the runner."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._past = PastPartitions(attempt)

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to one message."""
        if question["question"] == RECORDED:
            return self._recorded(question)
        if question["question"] == PRESENT:
            return self._present(question)
        return self._past.answer(question)

    def _recorded(self, question: Mapping[str, Any]) -> dict[str, Any]:
        keys, name = question.get("keys"), question.get("asset")
        assets = self._upstream | self._own
        asset = assets.get(name) if isinstance(name, str) else None
        if asset is None:
            return {"type": "answer", "error": "'asset' is not an asset that the run reads"}
        if not isinstance(keys, list) or not all(map(_is_key, keys)):
            return {"type": "answer", "error": "'keys' is not a list of partition keys"}
        recorded = records_of(asset, keys)
        return {
            "type": "answer",
            "recorded": {key: record.to_json() for key, record in recorded.items()},
        }

    def _present(self, question: Mapping[str, Any]) -> dict[str, Any]:
        keys, name = question.get("keys"), question.get("asset")
        asset = self._own.get(name) if isinstance(name, str) else None
        if asset is None:
            return {"type": "answer", "error": "'asset' is no asset of the run"}
        if not isinstance(keys, list) or not all(map(_is_key, keys)):
            return {"type": "answer", "error": "'keys' are texts of partition keys"}
        rows = AssetPartition.objects.materialized_of(asset).filter(key__in=keys)
        return {"type": "answer", "present": list(rows.values_list("key", flat=True))}

    @cached_property
    def _own(self) -> dict[str, Asset]:
        """The assets that the run materializes, as partitioned by its version of the code."""
        version = self._attempt.run.producer_version
        specs = {name: version.spec.partition_of(name) for name in version.spec.outlet_names}
        rows = Asset.objects.filter(name__in=list(specs))
        frozen = {
            asset.pk: PartitionDefinition.of(spec) if (spec := specs[asset.name]) else None
            for asset in rows
        }
        return {asset.name: as_frozen(asset, frozen) for asset in rows}

    @cached_property
    def _upstream(self) -> dict[str, Asset]:
        run = self._attempt.run
        assets = Asset.objects.select_related("partition_definition").filter(
            name__in=run.producer_version.spec.upstream_names
        )
        definitions = frozen_definitions(run.group_id, run.producer_version_id)
        return {asset.name: as_frozen(asset, definitions) for asset in assets}


def _is_key(value: object) -> bool:
    return isinstance(value, str) and is_storable(value)

"""The validations of a run: of inlets, before the function; of outlets, after the function."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from slicewise.declaring.decorator import Asset, MultiAsset
from slicewise.io.recorded import LostDataError
from slicewise.runner.channel import Channel
from slicewise.runner.function_arguments import FunctionArguments
from slicewise.runner.wire import Message
from slicewise.running.invoke import Producer, all_inlet_validations
from slicewise.validations import (
    AssetValidation,
    ValidationResult,
    check_all,
    not_evaluated,
    refuse_failed,
)

# Results are written by people's own functions too, and a message has at most a megabyte.
_RESULTS_PER_MESSAGE = 50
_TEXT_LENGTH = 2000
# Each validation of one partition is a job of Spark.
_MOST_VALIDATED_SINGLY = 1000

_logger = logging.getLogger("slicewise")


class DatabaseClock:
    """The database's clock, with which times of materialization are compared.

    The worker has read it together with the monotonic clock of this host, which says how much time
    has passed since. An error of the host's other clock has no effect here.
    """

    def __init__(self, read: Mapping[str, Any]) -> None:
        self._read_at = datetime.fromisoformat(read["database"])
        self._monotonic = float(read["monotonic"])

    def now(self) -> datetime:
        """Return the present time of the database, aware."""
        return self._read_at + timedelta(seconds=time.monotonic() - self._monotonic)


class Results(dict[str, list[ValidationResult]]):
    """The results of validations, by the name of the asset."""


class RunValidations:
    """The validations of one run's assets: evaluates each, and reports the results to the
    worker.
    """

    def __init__(
        self,
        producer: Producer,
        assets: Mapping[str, Asset],
        worker: Channel,
        clock: DatabaseClock,
    ) -> None:
        self._producer, self._assets, self._worker = producer, assets, worker
        self._clock = clock

    def inlets(self, arguments: FunctionArguments, request: Message) -> None:
        """Raise ValidationFailedError if data that the run reads does not pass, and LostDataError
        if the data differs from the record.
        """
        declared, results = all_inlet_validations(self._producer, self._assets), Results()
        for name, validations in declared.items():
            materialized_text = (request["upstreams"].get(name) or {}).get("materialized_at")
            results[name] = _evaluated(
                validations,
                partial(_read, arguments, name),
                now=self._clock.now(),
                materialized_at=datetime.fromisoformat(materialized_text)
                if materialized_text
                else None,
            )
        self._report("inlet", results, declared)

    def outlets(self, arguments: FunctionArguments) -> None:
        """Raise ValidationFailedError if data that the run wrote does not pass.

        All written data of an asset is one frame, for any number of partitions. A run that found no
        partitions has no data to validate.
        """
        declared = {asset.name: asset.validations for asset in _made_by(self._producer)}
        results = Results()
        for outlet in arguments.outlets:
            if declared.get(outlet.name) and not (outlet.finds_partitions and not outlet.staged):
                now = self._clock.now()
                results[outlet.name] = _evaluated(
                    declared[outlet.name], outlet.read_staged, now=now, materialized_at=now
                )
        self._report("outlet", results, declared)

    def failing_partitions(self, arguments: FunctionArguments) -> dict[str, str]:
        """Validate each partition by itself, after the data as a whole did not pass; return the
        partitions that do not pass, by key text, each with the reason.

        Empty if no partitions can be told from the rest: all fail or none does, the partitions that
        pass alone do not pass together, or there are too many to validate one by one.
        """
        (outlet,) = arguments.outlets
        validations = next(asset.validations for asset in _made_by(self._producer))
        now, reasons = self._clock.now(), {}
        if len(outlet.staged) > _MOST_VALIDATED_SINGLY:
            _logger.warning("%s partitions are too many to validate one by one", len(outlet.staged))
            return {}
        for partition in outlet.staged:
            read = partial(outlet.read_staged, [partition])
            blocking = _blocking(_evaluated(validations, read, now=now, materialized_at=now))
            if blocking:
                reasons[partition.key] = f"It does not pass {blocking}"[:_TEXT_LENGTH]
        rest = [partition for partition in outlet.staged if partition.key not in reasons]
        if not reasons or not rest:
            return {}
        read = partial(outlet.read_staged, rest)
        together = _evaluated(validations, read, now=now, materialized_at=now)
        return {} if _blocking(together) else reasons

    def _report(
        self, when: str, results: Results, declared: Mapping[str, Sequence[AssetValidation]]
    ) -> None:
        for name, asset_results in results.items():
            results_json = [
                _json(validation, result)
                for validation, result in zip(declared[name], asset_results, strict=True)
            ]
            for start in range(0, len(results_json), _RESULTS_PER_MESSAGE):
                page = results_json[start : start + _RESULTS_PER_MESSAGE]
                self._worker.say(
                    {"type": "validated", "when": when, "asset": name, "results": page}
                )
            for result in asset_results:
                if not result.passed:
                    _logger.warning("%s does not pass %s: %s", name, result.name, result.message)
        refuse_failed(results)


def _evaluated(
    validations: Sequence[AssetValidation],
    read: Callable[[], Any],
    *,
    now: datetime,
    materialized_at: datetime | None,
) -> list[ValidationResult]:
    """Return the results, in order. Data is read only if a validation needs the data.

    Raises LostDataError, and the errors of Spark when its server is gone.
    """
    frame = unreadable = None
    if any(validation.rule.needs_data for validation in validations):
        try:
            frame = read()
        except LostDataError:  # says how to restore the data, and no retry can
            raise
        except Exception as error:
            unreadable = error
    evaluable = [
        validation
        for validation in validations
        if unreadable is None or not validation.rule.needs_data
    ]
    results = iter(check_all(frame, evaluable, now=now, materialized_at=materialized_at))
    return [
        not_evaluated(validation, unreadable)
        if unreadable and validation.rule.needs_data
        else next(results)
        for validation in validations
    ]


def _blocking(results: Sequence[ValidationResult]) -> str:
    """Return the failures that stop a run, in one line; an empty text if there are none."""
    sentences = (
        f"{result.name}: {result.message.splitlines()[0]}" for result in results if result.blocks
    )
    return " ".join(sentences)


def _read(arguments: FunctionArguments, name: str) -> Any:
    if name not in arguments.upstream:
        raise LookupError(f"the server knows no asset {name!r}")
    return arguments.upstream[name].read()


def _made_by(producer: Producer) -> Sequence[Asset]:
    if isinstance(producer, MultiAsset):
        return producer.outlets
    return [producer] if isinstance(producer, Asset) else []


def _json(validation: AssetValidation, result: ValidationResult) -> Message:
    return {
        **result.to_json(),
        "message": result.message[:_TEXT_LENGTH],
        "description": validation.description[:_TEXT_LENGTH],
    }

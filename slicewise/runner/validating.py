"""The validations of a run: of what it reads, before the function; of what it wrote, after it."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from slicewise.assets import Asset, MultiAsset
from slicewise.invoke import Producer, inlet_checks
from slicewise.runner.channel import Channel
from slicewise.runner.given import Given
from slicewise.runner.wire import Message
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
# Each is a job of Spark.
_MOST_APART = 1000

_logger = logging.getLogger("slicewise")


class DatabaseClock:
    """The database's clock, by which it is told when data was made.

    The worker has read it together with the monotonic clock of this host. That one says how much
    time has passed since; by how much the host's other clock is wrong says nothing here.
    """

    def __init__(self, read: Mapping[str, Any]) -> None:
        self._read_at = datetime.fromisoformat(read["database"])
        self._monotonic = float(read["monotonic"])

    def now(self) -> datetime:
        """Return the present, aware."""
        return self._read_at + timedelta(seconds=time.monotonic() - self._monotonic)


class Results(dict[str, list[ValidationResult]]):
    """By the name of the asset."""


class Validating:
    """Evaluates what is declared of the assets of one run, and tells the worker what was seen."""

    def __init__(
        self,
        producer: Producer,
        assets: Mapping[str, Asset],
        worker: Channel,
        clock: DatabaseClock,
    ) -> None:
        self._producer, self._assets, self._worker = producer, assets, worker
        self._clock = clock

    def inlets(self, given: Given, request: Message) -> None:
        """Raises ValidationFailedError where what the run reads does not pass."""
        declared, results = inlet_checks(self._producer, self._assets), Results()
        for name, validations in declared.items():
            made = (request["upstreams"].get(name) or {}).get("materialized_at")
            results[name] = _evaluated(
                validations,
                partial(_read, given, name),
                now=self._clock.now(),
                materialized_at=datetime.fromisoformat(made) if made else None,
            )
        self._tell("inlet", results, declared)

    def outlets(self, given: Given) -> None:
        """Raises ValidationFailedError where what the run wrote does not pass.

        All that was written of an asset is one frame, whatever the number of its partitions. A run
        that found none has nothing to be asked.
        """
        declared = {one.name: one.validations for one in _made_by(self._producer)}
        results = Results()
        for own in given.outlets:
            if declared.get(own.name) and not (own.finds_partitions and not own.staged):
                now = self._clock.now()
                results[own.name] = _evaluated(
                    declared[own.name], own.read_staged, now=now, materialized_at=now
                )
        self._tell("outlet", results, declared)

    def apart(self, given: Given) -> dict[str, str]:
        """What was written does not pass as a whole: which partitions do not pass by themselves,
        by key text, each with the reason.

        Empty where no part can be told from the rest: all fail or none does, what passes apart does
        not pass together, or there are too many to look at one by one.
        """
        (own,) = given.outlets
        validations = next(one.validations for one in _made_by(self._producer))
        now, refused = self._clock.now(), {}
        if len(own.staged) > _MOST_APART:
            _logger.warning("%s partitions are too many to validate one by one", len(own.staged))
            return {}
        for piece in own.staged:
            read = partial(own.read_staged, [piece])
            blocking = _blocking(_evaluated(validations, read, now=now, materialized_at=now))
            if blocking:
                refused[piece.key] = f"It does not pass {blocking}"[:_TEXT_LENGTH]
        rest = [piece for piece in own.staged if piece.key not in refused]
        if not refused or not rest:
            return {}
        read = partial(own.read_staged, rest)
        together = _evaluated(validations, read, now=now, materialized_at=now)
        return {} if _blocking(together) else refused

    def _tell(
        self, when: str, results: Results, declared: Mapping[str, Sequence[AssetValidation]]
    ) -> None:
        for name, listed in results.items():
            said = [
                _json(validation, result)
                for validation, result in zip(declared[name], listed, strict=True)
            ]
            for start in range(0, len(said), _RESULTS_PER_MESSAGE):
                page = said[start : start + _RESULTS_PER_MESSAGE]
                self._worker.say(
                    {"type": "validated", "when": when, "asset": name, "results": page}
                )
            for result in listed:
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
    """The results, in order. Data is read only where one of them asks for it."""
    frame = unreadable = None
    if any(validation.rule.needs_data for validation in validations):
        try:
            frame = read()
        except Exception as error:
            unreadable = error
    asked = [one for one in validations if unreadable is None or not one.rule.needs_data]
    results = iter(check_all(frame, asked, now=now, materialized_at=materialized_at))
    return [
        not_evaluated(one, unreadable) if unreadable and one.rule.needs_data else next(results)
        for one in validations
    ]


def _blocking(results: Sequence[ValidationResult]) -> str:
    """What stops a run, in one line; empty for nothing."""
    found = (f"{one.name}: {one.message.splitlines()[0]}" for one in results if one.blocks)
    return " ".join(found)


def _read(given: Given, name: str) -> Any:
    if name not in given.upstream:
        raise LookupError(f"the server knows no asset {name!r}")
    return given.upstream[name].read()


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

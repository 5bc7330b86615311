"""Trial runs of an asset's function without a server, in unit tests and notebooks."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

from slicewise.declaring.decorator import Asset, MultiAsset, ProducedAsset
from slicewise.declaring.step_functions import parameters_of_inlets
from slicewise.errors import DefinitionError
from slicewise.partitions.discovery import Discoveries
from slicewise.running.context import PartitionContext, RunContext
from slicewise.running.invoke import all_inlet_validations
from slicewise.running.steps import RunSteps
from slicewise.running.trials import (
    Frame,
    FrameHandle,
    InMemoryHandle,
    mapped_keys,
    mappings_of,
    past_before,
    past_frames,
    reachable_assets,
    read_keys,
    unknown_keys,
)
from slicewise.running.written_handles import Outlets
from slicewise.texts.tracebacks import one_line
from slicewise.validations import ValidationFailedError, check_all, refuse_failed

__all__ = ["ValidationFailedError", "materialize"]


def materialize(
    asset: Asset | MultiAsset,
    *,
    partition: object = None,
    upstream: Mapping[Any, Frame] | None = None,
    spark: Any = None,
    params: Mapping[str, Any] | None = None,
    past: Iterable[object] = (),
    discovered: dict[str, list[Any]] | None = None,
) -> Any:
    """Run an asset's function in this process; return its result or, if None, the data it wrote.

    Nothing is written to the asset; no server is contacted, and Spark is used only if the function
    or a validation uses Spark. Set-up and tear-down are called around the function, the tear-down
    also after an error; a failure of the tear-down is a warning, or a note on that error.

    - ``asset``: an asset under ``@asset``; or the assets under ``@asset.multi``, or one of them, to
      materialize all of them: the result is a mapping of names to frames.
    - ``partition``: a selection (``"2013-01-01"``, ``"2013-01"``), a key, a list of keys or a
      PartitionSet; needed for a partitioned asset. For a `PartitionAtRuntime` a string is one key;
      without ``partition`` the function is run to discover partitions. With
      ``self.write(frame, partition=key)`` the result is a mapping of keys to frames.
    - ``upstream``: for each asset that the function reads, or for the name of the asset, a
      DataFrame or a stand-in for one. The upstream partitions of this run are computed if the
      upstream asset itself is known: as a key here, among the globals of the function, or in the
      asset's ``upstream=`` or ``schedule=``.
    - ``spark``: the session for a function with the parameter ``spark``.
    - ``params``: values that override the declared params.
    - ``past``: keys that were materialized before, of which `iter_past_partitions` yields the keys
      that a server would yield. Without a time dimension, the key materialized last comes first.
      A mapping of keys to frames is also the data that ``self.read(partition=key)`` reads.
    - ``discovered``: a dict that is filled, once the function has succeeded, with the runtime keys
      that the function added: lists of keys by the name of the runtime partitions.

    Raises PartitionKeyError, SelectionError or DefinitionError for bad arguments, LookupError for
    an upstream asset without data, ValidationFailedError if a validation of severity "error" fails
    (a failed validation of severity "warn" is a warning), and every error that the function raises.
    """
    trial = _Trial(_producer(asset), partition, spark, past)
    inputs = trial.inputs(upstream or {})
    context = trial.context(inputs, params or {})
    trial.check_inlets(inputs)
    steps = RunSteps(trial.producer, context, trial.own, trial.session)
    with _torn_down(steps):
        returned = steps.make(inputs)
        trial.check_outlets()
    if discovered is not None:
        for name, keys in context.discovered.items():
            discovered.setdefault(name, []).extend(key.value for key in keys)
    return trial.written() if returned is None else returned


@contextmanager
def _torn_down(steps: RunSteps) -> Iterator[None]:
    """Call the tear-down at the end of the block, whatever happens there."""
    try:
        yield
    except BaseException as error:
        outcome = "failed" if isinstance(error, Exception) else "canceled"
        failure = steps.tear_down(outcome, one_line(error) if outcome == "failed" else None)
        if failure is not None:
            error.add_note(f"The teardown failed too: {one_line(failure)}")
        raise
    failure = steps.tear_down("succeeded", None)
    if failure is not None:
        warnings.warn(f"the teardown failed: {one_line(failure)}", stacklevel=4)


class _Trial:
    """One call of `materialize`."""

    def __init__(
        self,
        producer: ProducedAsset | MultiAsset,
        partition: object,
        spark: Any,
        past: Iterable[object],
    ) -> None:
        self.producer = producer
        self._spark = spark
        self._now = datetime.now(UTC)
        self._outlets: Sequence[Asset] = (
            producer.outlets if isinstance(producer, MultiAsset) else [producer]
        )
        self._known: Mapping[str, Asset] = {}
        self._definition = producer.partition
        self._keys = read_keys(producer.name, self._definition, partition)
        self._past = past_before(self._definition, self._keys, past)
        self._frames = past_frames(self._definition, past)
        self._discoveries = Discoveries()
        self._handles = [self._own(outlet) for outlet in self._outlets]
        self.own: Outlets | InMemoryHandle = (
            Outlets(self._handles) if isinstance(producer, MultiAsset) else self._handles[0]
        )

    def session(self) -> Any:
        """Return the session that was passed as ``spark``."""
        if self._spark is None:
            raise DefinitionError(f"{self.producer.name} needs a Spark session; pass spark=...")
        return self._spark

    def inputs(self, frames: Mapping[Any, Frame]) -> dict[str, FrameHandle]:
        """Return a handle for each upstream asset."""
        named = {key if isinstance(key, str) else key.name: frame for key, frame in frames.items()}
        parameters = parameters_of_inlets(self.producer.function, self.producer.options)
        inlet_names = list(parameters.values())
        for name in inlet_names:
            if name not in named:
                raise LookupError(
                    f"{self.producer.name} reads {name!r}, and no data is given: pass"
                    f" upstream={{{name!r}: ...}}"
                )
        unknown_names = [name for name in named if name not in inlet_names]
        if unknown_names:
            raise DefinitionError(
                f"{self.producer.name} does not read {unknown_names[0]!r}; the inlets are"
                f" {', '.join(inlet_names) or 'none'}"
            )
        passed_assets = {key.name: key for key in frames if isinstance(key, Asset)}
        self._known = {**reachable_assets(self.producer), **passed_assets}
        return {name: self._input(name, named[name], self._known.get(name)) for name in inlet_names}

    def _input(self, name: str, frame: Frame, asset: Asset | None) -> FrameHandle:
        if asset is None:
            keys = partial(unknown_keys, name)
        else:
            mapping = mappings_of(self.producer).get(name)
            keys = partial(mapped_keys, self._definition, self._keys, asset, mapping, self._now)
        return FrameHandle(
            name,
            frame,
            uri=None if asset is None else asset.uri,
            definition=None if asset is None else asset.partition,
            columns=None if asset is None else asset.columns,
            keys=keys,
            session=self.session,
        )

    def _own(self, outlet: Asset) -> InMemoryHandle:
        return InMemoryHandle(
            outlet.name,
            uri=outlet.uri,
            definition=self._definition,
            keys=self._keys,
            session=self.session,
            past=self._frames,
            discoveries=self._discoveries,
            outside=self.producer.options.outside,
        )

    def context(self, inputs: Mapping[str, FrameHandle], params: Mapping[str, Any]) -> RunContext:
        """Return the context of the run for the function."""
        return RunContext(
            run_id=0,
            attempt=1,
            trigger="manual",
            params={**self.producer.options.params, **params},
            asset=self.own,
            logical_time=self._now,
            partition=PartitionContext(self._definition, self._keys, inputs, self._past),
            discoveries=self._discoveries,
        )

    def check_inlets(self, inputs: Mapping[str, FrameHandle]) -> None:
        """Run the validations of the inlets that the function reads."""
        for name, validations in all_inlet_validations(self.producer, self._known).items():
            if name in inputs:
                _check(name, [inputs[name].read()], validations)

    def check_outlets(self) -> None:
        """Run the validations of the data that the function wrote."""
        for outlet, handle in zip(self._outlets, self._handles, strict=True):
            _check(outlet.name, handle.frames(), outlet.validations)

    def written(self) -> Any:
        """Return the frames that were written through the handles."""
        if isinstance(self.own, Outlets):
            return {handle.name: handle.written for handle in self._handles}
        return self._handles[0].written


def _producer(asset: Any) -> ProducedAsset | MultiAsset:
    """Return the producer of an asset: the asset itself, or the multi-asset that contains it."""
    made_by = asset.made_by if isinstance(asset, Asset) else asset
    if not isinstance(made_by, ProducedAsset | MultiAsset):
        raise DefinitionError(f"{asset!r} has no function: another program writes the asset")
    return made_by


def _check(name: str, frames: Iterable[Frame], validations: Sequence[Any]) -> None:
    if not validations:
        return
    results = [result for frame in frames for result in check_all(frame, validations)]
    for result in results:
        if not result.passed and not result.blocks:
            warnings.warn(f"{name}: {result.name}: {result.message}", stacklevel=4)
    refuse_failed({name: results})

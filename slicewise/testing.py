"""Trying an asset's function without a server, in unit tests and notebooks."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from slicewise.assets import Asset, ProducedAsset
from slicewise.context import PartitionContext, RunContext
from slicewise.definitions import PartitionDefinition
from slicewise.errors import DefinitionError, PartitionKeyError
from slicewise.handles import AssetHandle
from slicewise.invoke import invoke
from slicewise.keys import WHOLE, PartitionKey

__all__ = ["FrameHandle", "materialize"]

Frame = Any  # a DataFrame of pyspark, or whatever stands in for one in a test


class FrameHandle(AssetHandle):
    """A handle whose data is given: `read` returns it. What is written is kept in `written`."""

    def __init__(self, name: str, frame: Frame = None, **facts: Any) -> None:
        super().__init__(name, **facts)
        self._frame = frame
        self.written: Frame = None

    def read(self) -> Frame:
        """The frame that was given."""
        return self._frame

    def write(self, frame: Frame) -> None:
        """Keeps the frame."""
        self.written = frame


def materialize(
    asset: Asset,
    *,
    partition: str | None = None,
    upstream: Mapping[str, Any] | None = None,
    spark: Any = None,
    params: Mapping[str, Any] | None = None,
) -> Any:
    """Runs an asset's function in this process: what it returned or, if nothing, what it wrote.

    ``partition`` is a selection (``"2013-01-01"``, ``"2013-01"``), needed for a partitioned asset;
    ``upstream`` holds a DataFrame, or whatever stands in for one, by asset name; ``spark`` is
    handed to a function that asks for it. ``params`` override those declared. Nothing is written
    to the asset. Raises PartitionKeyError, SelectionError or DefinitionError for bad arguments.
    """
    if not isinstance(asset, ProducedAsset):
        raise DefinitionError(f"{asset!r} has no function: it is written by something else")

    def session() -> Any:
        if spark is None:
            raise DefinitionError(f"{asset.name} asks for spark; hand it in as spark=...")
        return spark

    keys = _keys(asset, partition)
    handles = {
        name: FrameHandle(name, frame, uri=None, definition=None, keys=(), session=session)
        for name, frame in (upstream or {}).items()
    }
    own = FrameHandle(
        asset.name, uri=asset.uri, definition=asset.partition, keys=keys, session=session
    )
    context = RunContext(
        run_id=0,
        attempt=1,
        trigger="manual",
        params={**asset.options.params, **(params or {})},
        asset=own,
        logical_time=datetime.now(UTC),
        partition=PartitionContext(asset.partition, keys, handles),
    )
    returned = invoke(asset, context, own, handles, session)
    return own.written if returned is None else returned


def _keys(asset: ProducedAsset, selection: str | None) -> list[PartitionKey]:
    definition: PartitionDefinition | None = asset.partition
    if definition is None:
        if selection is not None:
            raise PartitionKeyError(f"{asset.name} is not partitioned; leave partition out")
        return [WHOLE]
    if selection is None:
        raise PartitionKeyError(f'{asset.name} is partitioned; say partition="..."')
    return list(definition.select(selection))

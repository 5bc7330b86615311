"""What stands in for a server where an asset is tried: handles, keys, and the past."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import reduce
from typing import Any

from slicewise import spark
from slicewise.assets import Asset
from slicewise.by_sequence import PartitionAtRuntime
from slicewise.definitions import PartitionDefinition
from slicewise.discovery import runtime_key
from slicewise.errors import DefinitionError, PartitionKeyError
from slicewise.handles import AssetHandle, WritableHandle
from slicewise.invoke import Producer
from slicewise.io import find_storage
from slicewise.keys import WHOLE, PartitionKey
from slicewise.mapping import PartitionMapping, upstream_partitions
from slicewise.partition_set import PartitionSet
from slicewise.registry import active_registry
from slicewise.snapshots import named_key

Frame = Any  # a DataFrame of pyspark, or whatever stands in for one in a test
Keys = Sequence[PartitionKey]


class FrameHandle(AssetHandle):
    """An upstream asset whose data is given: `read` returns it."""

    def __init__(self, name: str, frame: Frame, **facts: Any) -> None:
        super().__init__(name, **facts)
        self._frame = frame

    def __repr__(self) -> str:
        return f"<asset {self.name}, whose data is given>"

    def read(self, *, version: int | None = None) -> Frame:
        """Return the frame that was given, whatever the version."""
        return self._frame


class KeepingHandle(WritableHandle):
    """The asset that is tried: what is written is kept and goes nowhere."""

    def __init__(self, name: str, *, past: Mapping[str, Frame], **facts: Any) -> None:
        super().__init__(name, **facts)
        self._past = past
        self._whole: Frame = None
        self._parts: dict[Any, Frame] = {}

    def _absent(self, keys: Sequence[str]) -> list[str]:
        return [key for key in keys if key not in self._past]

    def _refuse_version(self, version: int | None) -> None:
        """Versions are read as they are given, as those of upstream assets are."""

    def _read_earlier(self, keys: Keys, version: int | None) -> Frame:
        """The frame of a partition, as it was given; those of several joined."""
        frames = [self._past[key.text] for key in keys]
        if len(frames) > 1 and not all(map(spark.is_frame, frames)):
            raise TypeError(
                f"several partitions of {self.name} are joined where they are Spark DataFrames;"
                " read them one by one"
            )
        return reduce(lambda left, right: left.unionByName(right), frames)

    @property
    def can_write(self) -> bool:
        """Whether a run would write it."""
        return find_storage(self.canonical_uri) is not None

    @property
    def must_write(self) -> bool:
        """Whether a run that writes nothing of it would fail."""
        found = find_storage(self.canonical_uri)
        return found is not None and found.must_write

    @property
    def written(self) -> Frame:
        """The frame; a mapping of keys to frames where partitions were written one by one."""
        return self._parts or self._whole

    def frames(self) -> list[Frame]:
        """Return all frames that were written."""
        return list(self._parts.values()) or ([] if self._whole is None else [self._whole])

    def _store(self, frame: Frame, keys: Keys, *, apart: bool) -> None:
        if apart:
            self._parts[keys[0].value] = frame
        else:
            self._whole = frame


def read_keys(name: str, definition: PartitionDefinition | None, partition: object) -> Keys:
    """Return the keys of a run that is asked for by a selection, a key, a list of keys or a
    set of them.

    Raises PartitionKeyError for what names no partition, SelectionError for a selection that
    cannot be read.
    """
    if definition is None:
        if partition is not None:
            raise PartitionKeyError(f"{name} is not partitioned; leave partition out")
        return [WHOLE]
    if partition is None:
        if isinstance(definition, PartitionAtRuntime):
            return []
        raise PartitionKeyError(f'{name} is partitioned; say partition="..."')
    found = list(_selected(definition, partition))
    if not found:
        raise PartitionKeyError(f"partition={partition!r} names no partition of {name}")
    return found


def _selected(definition: PartitionDefinition, partition: object) -> Iterable[PartitionKey]:
    if isinstance(partition, PartitionSet):
        if partition.definition != definition:
            raise PartitionKeyError("the set of partitions is one of another definition")
        return partition
    if isinstance(partition, list):
        return _in_order(definition, [_key(definition, item) for item in partition])
    is_selection = isinstance(partition, str) and not isinstance(definition, PartitionAtRuntime)
    if is_selection and partition not in definition:
        return definition.select(str(partition))
    return _in_order(definition, [_key(definition, partition)])


def _key(definition: PartitionDefinition, item: object) -> PartitionKey:
    """The key that a key, plain value or key text stands for."""
    if isinstance(definition, PartitionAtRuntime):
        return runtime_key(definition, definition.parse(item) if isinstance(item, str) else item)
    return PartitionKey.of(named_key(definition, item))


def _in_order(definition: PartitionDefinition, keys: Keys) -> Iterable[PartitionKey]:
    """Each once; the keys of sets found at run time have no order but the one they are given in."""
    if isinstance(definition, PartitionAtRuntime):
        return list({key.text: key for key in keys}.values())
    return PartitionSet.of(definition, keys)


def past_before(
    definition: PartitionDefinition | None, keys: Keys, past: Iterable[object]
) -> Callable[[], Iterator[PartitionKey]]:
    """Return the past that a server would tell a run of these keys: `PartitionContext`'s.

    Partitions without time are given as they are: the one that was made last stands first.
    """
    if definition is None:
        return lambda: iter(())
    given = [_key(definition, item) for item in past]
    windows = [key.time for key in keys if key.time is not None]
    if windows:
        start = min(window.start for window in windows)
        before = [key for key in given if key.time is not None and key.time.start < start]
        given = list(PartitionSet.of(definition, before))[::-1]
    return lambda: (key for key in given if key not in keys)


def past_frames(definition: PartitionDefinition | None, past: Iterable[object]) -> dict[str, Frame]:
    """Return the frames of earlier partitions by key text, where they are given with their keys."""
    if definition is None or not isinstance(past, Mapping):
        return {}
    return {_key(definition, item).text: frame for item, frame in past.items()}


def mapped_keys(
    definition: PartitionDefinition | None,
    keys: Keys,
    upstream: Asset,
    mapping: PartitionMapping | None,
    now: datetime,
) -> Keys:
    """Return the keys of an upstream asset that those of a run need."""
    found = upstream_partitions(definition, upstream.partition, list(keys), mapping, until=now)
    return list(found)


def unknown_keys(name: str) -> Keys:
    """Raise DefinitionError: of the asset no more is known than its name."""
    raise DefinitionError(
        f"how {name} is partitioned is not known here: hand the asset itself in, as"
        f" upstream={{{name}: ...}}"
    )


def reachable_assets(producer: Producer) -> dict[str, Asset]:
    """Return the assets that the file of a function declares or imports, and those that it maps."""
    function = inspect.unwrap(producer.function)
    registry = active_registry()
    near = [
        *([] if registry is None else registry.assets.values()),
        *getattr(function, "__globals__", {}).values(),
        producer.options.schedule,
        *producer.options.upstream,
    ]
    return {asset.name: asset for asset in near if isinstance(asset, Asset)}


def mappings_of(producer: Producer) -> Mapping[str, PartitionMapping]:
    """Return the mappings that an asset says, by the upstream asset's name."""
    said = producer.options.upstream.items()
    return {key if isinstance(key, str) else key.name: mapping for key, mapping in said}

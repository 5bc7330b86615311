"""The stand-ins for a server in trial runs of an asset: handles, keys, and past partitions."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import reduce
from typing import Any

from slicewise import spark
from slicewise.declaring.active_registry import active_registry
from slicewise.declaring.decorator import Asset
from slicewise.errors import DefinitionError, PartitionKeyError
from slicewise.io import find_storage
from slicewise.keys.partition_key import PartitionKey
from slicewise.keys.product_key import WHOLE
from slicewise.mapping.partition_mapping import PartitionMapping, upstream_partitions
from slicewise.partitions.by_sequence import PartitionAtRuntime
from slicewise.partitions.definition import PartitionDefinition, PartitionSet
from slicewise.partitions.discovery import runtime_key
from slicewise.partitions.runtime_keys import named_key
from slicewise.running.handles import AssetHandle
from slicewise.running.invoke import Producer
from slicewise.running.written_handles import WritableHandle

Frame = Any  # a DataFrame of pyspark, or a stand-in for one in a test
Keys = Sequence[PartitionKey]


class FrameHandle(AssetHandle):
    """An upstream asset with provided data, which `read` returns."""

    def __init__(self, name: str, frame: Frame, **facts: Any) -> None:
        super().__init__(name, **facts)
        self._frame = frame

    def __repr__(self) -> str:
        return f"<asset {self.name}, whose data is given>"

    def read(self, *, version: int | None = None) -> Frame:
        """Return the provided frame, for every version."""
        return self._frame


class InMemoryHandle(WritableHandle):
    """The asset of a trial run: written frames are kept in memory and stored nowhere."""

    def __init__(self, name: str, *, past: Mapping[str, Frame], **facts: Any) -> None:
        super().__init__(name, **facts)
        self._past = past
        self._whole: Frame = None
        self._frames_by_key: dict[Any, Frame] = {}

    def _absent(self, keys: Sequence[str]) -> list[str]:
        return [key for key in keys if key not in self._past]

    def _refuse_version(self, version: int | None) -> None:
        """Accept every version: versions are read as provided, like versions of upstream assets."""

    def _read_earlier(self, keys: Keys, version: int | None) -> Frame:
        """Return the provided frame of a partition, or the joined frames of several partitions."""
        frames = [self._past[key.text] for key in keys]
        if len(frames) > 1 and not all(map(spark.is_frame, frames)):
            raise TypeError(
                f"several partitions of {self.name} can be joined only as Spark DataFrames; read"
                " the partitions one by one"
            )
        return reduce(lambda joined, frame: joined.unionByName(frame), frames)

    @property
    def can_write(self) -> bool:
        """Whether a run would write the asset."""
        return find_storage(self.canonical_uri) is not None

    @property
    def must_write(self) -> bool:
        """Whether a run that does not write the asset would fail."""
        storage = find_storage(self.canonical_uri)
        return storage is not None and storage.must_write

    @property
    def written(self) -> Frame:
        """The frame; a mapping of keys to frames if partitions were written one by one."""
        return self._frames_by_key or self._whole

    def frames(self) -> list[Frame]:
        """Return all written frames."""
        return list(self._frames_by_key.values()) or ([] if self._whole is None else [self._whole])

    def _store(self, frame: Frame, keys: Keys, *, single_partition: bool) -> None:
        if single_partition:
            self._frames_by_key[keys[0].value] = frame
        else:
            self._whole = frame


def read_keys(name: str, definition: PartitionDefinition | None, partition: object) -> Keys:
    """Return the keys of a run requested by a selection, a key, a list of keys or a PartitionSet.

    Raises PartitionKeyError for a value that names no partition, SelectionError for an invalid
    selection.
    """
    if definition is None:
        if partition is not None:
            raise PartitionKeyError(f"{name} is not partitioned; leave partition out")
        return [WHOLE]
    if partition is None:
        if isinstance(definition, PartitionAtRuntime):
            return []
        raise PartitionKeyError(f'{name} is partitioned; write partition="..."')
    keys = list(_selected(definition, partition))
    if not keys:
        raise PartitionKeyError(f"partition={partition!r} names no partition of {name}")
    return keys


def _selected(definition: PartitionDefinition, partition: object) -> Iterable[PartitionKey]:
    if isinstance(partition, PartitionSet):
        if partition.definition != definition:
            raise PartitionKeyError("the set of partitions belongs to another partition definition")
        return partition
    if isinstance(partition, list):
        return _in_order(definition, [_key(definition, item) for item in partition])
    is_selection = isinstance(partition, str) and not isinstance(definition, PartitionAtRuntime)
    if is_selection and partition not in definition:
        return definition.select(str(partition))
    return _in_order(definition, [_key(definition, partition)])


def _key(definition: PartitionDefinition, item: object) -> PartitionKey:
    """Return the key of a key, plain value or key text."""
    if isinstance(definition, PartitionAtRuntime):
        return runtime_key(definition, definition.parse(item) if isinstance(item, str) else item)
    return PartitionKey.of(named_key(definition, item))


def _in_order(definition: PartitionDefinition, keys: Keys) -> Iterable[PartitionKey]:
    """Return each key once and in order; runtime partitions stay in the order of the request."""
    if isinstance(definition, PartitionAtRuntime):
        return list({key.text: key for key in keys}.values())
    return PartitionSet.of(definition, keys)


def past_before(
    definition: PartitionDefinition | None, keys: Keys, past: Iterable[object]
) -> Callable[[], Iterator[PartitionKey]]:
    """Return a function that yields the past keys that a server would give to a run of these keys.

    The result is for `PartitionContext`. Keys without time stay in the given order: the key
    materialized last comes first.
    """
    if definition is None:
        return lambda: iter(())
    past_keys = [_key(definition, item) for item in past]
    windows = [key.time for key in keys if key.time is not None]
    if windows:
        start = min(window.start for window in windows)
        earlier_keys = [key for key in past_keys if key.time is not None and key.time.start < start]
        past_keys = list(PartitionSet.of(definition, earlier_keys))[::-1]
    return lambda: (key for key in past_keys if key not in keys)


def past_frames(definition: PartitionDefinition | None, past: Iterable[object]) -> dict[str, Frame]:
    """Return the frames of earlier partitions by key text, if the past is given with frames."""
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
    """Return the keys of an upstream asset that the keys of a run need."""
    partitions = upstream_partitions(definition, upstream.partition, list(keys), mapping, until=now)
    return list(partitions)


def unknown_keys(name: str) -> Keys:
    """Raise DefinitionError, because only the name of the asset is known."""
    raise DefinitionError(
        f"the partition definition of {name} is not known here: pass the asset itself, as"
        f" upstream={{{name}: ...}}"
    )


def reachable_assets(producer: Producer) -> dict[str, Asset]:
    """Return the assets in the active registry, in the function's globals and in its options."""
    function = inspect.unwrap(producer.function)
    registry = active_registry()
    candidates = [
        *([] if registry is None else registry.assets.values()),
        *getattr(function, "__globals__", {}).values(),
        producer.options.schedule,
        *producer.options.upstream,
    ]
    return {asset.name: asset for asset in candidates if isinstance(asset, Asset)}


def mappings_of(producer: Producer) -> Mapping[str, PartitionMapping]:
    """Return the mappings that an asset declares, by the name of the upstream asset."""
    upstream_mappings = producer.options.upstream.items()
    return {
        key if isinstance(key, str) else key.name: mapping for key, mapping in upstream_mappings
    }

"""Handles of assets that a run materializes."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from threading import Lock
from typing import Any

from slicewise import spark
from slicewise.declaring.options import Outside
from slicewise.errors import PartitionKeyError
from slicewise.io import Staged, Writer, find_storage
from slicewise.io.frames import rows_of_partitions
from slicewise.keys.partition_key import PartitionKey
from slicewise.partitions.by_sequence import PartitionAtRuntime
from slicewise.partitions.discovery import Discoveries, runtime_key
from slicewise.partitions.runtime_keys import named_key
from slicewise.running.handles import AssetHandle, Frame, MissingPartitionsError, shown_keys

_EARLIER_HINT = "Read partitions of earlier runs by self.read(partition=...)"


class WritableHandle(AssetHandle):
    """An asset that the run materializes: each partition of the run can be written once."""

    def __init__(
        self,
        name: str,
        *,
        discoveries: Discoveries | None = None,
        outside: Outside = "error",
        **facts: Any,
    ) -> None:
        super().__init__(name, **facts)
        self._outside = outside
        self._discoveries = discoveries or Discoveries()
        self._by_text = {key.text: key for key in self.keys}
        self._claimed: set[str] = set()
        self._lock = Lock()
        self._closed: str | None = None

    def close(self, reason: str) -> None:
        """Refuse all further writes, with this reason."""
        self._closed = reason

    def read(self, *, version: int | None = None, partition: object = None) -> Frame:
        """Return a Spark DataFrame of partitions of the asset; by default the run's own partitions
        that earlier runs have materialized.

        ``partition`` is a key, or a list of keys, in a form that `write` takes or
        `iter_past_partitions` yields. All partitions can be read but the partitions that this run
        materializes. Raises PartitionKeyError for a partition of this run and for a value that is
        no partition, MissingPartitionsError for partitions that are not materialized, and otherwise
        the errors of reading an upstream asset.
        """
        if partition is None:
            return self._read_own(version)
        keys = self._keys_to_read(partition)
        self._refuse_version(version)
        missing = self._absent([key.text for key in keys])
        if missing:
            raise MissingPartitionsError(
                f"partitions of {self.name} that this run reads are not materialized:"
                f" {shown_keys(missing)}"
            )
        return self._read_earlier(keys, version)

    def _read_own(self, version: int | None) -> Frame:
        """Return the data of this run's partitions that earlier runs have materialized."""
        absent = set(self._absent(list(self._by_text)))
        if not absent:
            return super().read(version=version)
        present = [key for key in self.keys if key.text not in absent]
        if not present:
            raise MissingPartitionsError(self._not_there_sentence(sorted(absent)))
        self._refuse_version(version)
        return self._read_earlier(present, version)

    def _nothing_sentence(self) -> str:
        return (
            f"{self.name} has no data to read: this run discovers partitions and covers no"
            f" partition. {_EARLIER_HINT}"
        )

    def _not_there_sentence(self, absent: Sequence[str]) -> str:
        if self.definition is None:
            return f"{self.name} has no data to read: the asset is not materialized"
        verb = "is" if len(absent) == 1 else "are"
        return (
            f"{self.name} has no data to read: {shown_keys(absent)} {verb} not materialized."
            f" {_EARLIER_HINT}"
        )

    def _keys_to_read(self, partition: object) -> list[PartitionKey]:
        """Return the keys of the partitions to read. Raises PartitionKeyError."""
        items = list(partition) if isinstance(partition, list) else [partition]
        if self.definition is None:
            raise PartitionKeyError(f"{self.name} is not partitioned; leave partition out")
        if not items:
            raise PartitionKeyError("partition=[] names no partition to read")
        keys = list(dict.fromkeys(self._key_to_read(item) for item in items))
        own_texts = [key.text for key in keys if key.text in self._by_text]
        if own_texts:
            raise PartitionKeyError(
                f"this run writes {shown_keys(own_texts)} of {self.name}: read(partition=...) reads"
                " partitions of earlier runs, not partitions of this run"
            )
        return keys

    def _key_to_read(self, item: object) -> PartitionKey:
        if isinstance(self.definition, PartitionAtRuntime):
            parsed = self.definition.parse(item) if isinstance(item, str) else item
            return runtime_key(self.definition, parsed)
        if self.definition is not None:
            item = named_key(self.definition, item)
            if item not in self.definition:
                raise PartitionKeyError(f"{item!r} is no partition of {self.name}")
        return PartitionKey.of(item)

    def _absent(self, keys: Sequence[str]) -> list[str]:
        """Return the key texts of the partitions that are not materialized."""
        return []

    def _read_earlier(self, keys: Sequence[PartitionKey], version: int | None) -> Frame:
        """Return the data of materialized partitions. Raises LostDataError."""
        if version is None:
            self._refuse_lost_data(keys)
        return self._storage.read(self._session(), self.definition, keys, version=version)

    @property
    def can_write(self) -> bool:
        """Whether the asset's location can be written."""
        return True

    @property
    def must_write(self) -> bool:
        """Whether a run that writes no data of the asset fails."""
        return self.can_write

    @property
    def finds_partitions(self) -> bool:
        """Whether the run covers no partition of the asset, and has to discover partitions."""
        return isinstance(self.definition, PartitionAtRuntime) and not self.keys

    def write(self, frame: Frame, *, partition: object = None) -> None:
        """Write the run's partitions, to be published when the run has succeeded.

        A frame for several partitions has one column per dimension: texts of keys, or times inside
        the windows. ``partition`` says that the whole frame belongs to one partition: to a
        partition of the run or, in a run that covers no partition, to any key of the asset's
        `PartitionAtRuntime`, and the run then adds that key. Each partition is written once. Raises
        RowsError for rows outside the partitions, PartitionKeyError for a key that is not the
        run's, RuntimeError in a tear-down.
        """
        if self._closed is not None:
            raise RuntimeError(f"{self.name} cannot be written: {self._closed}")
        keys = self._keys_to_write(partition)
        self._claim(keys)
        try:
            if self._outside == "drop" and partition is None and spark.is_frame(frame):
                frame = rows_of_partitions(frame, self.definition, keys, keeps_null=True)
            self._store(frame, keys, single_partition=partition is not None)
        except BaseException:
            self._claimed.difference_update(key.text for key in keys)
            raise
        if self.finds_partitions:
            self._discoveries.add(self.definition, keys[0])

    def check_complete(self) -> None:
        """Raise ValueError with the keys of the run's partitions that are not written."""
        missing = [text for text in self._by_text if text not in self._claimed]
        if not missing or not self.can_write or not (self._claimed or self.must_write):
            return
        if not self._claimed:
            raise ValueError(
                f"the function of {self.name} returned nothing and wrote nothing; return a"
                " DataFrame, or call self.write"
            )
        count = len(missing)
        sentence = "1 partition of {} is" if count == 1 else f"{count} partitions of {{}} are"
        raise ValueError(f"{sentence.format(self.name)} not written: {shown_keys(missing)}")

    @property
    def is_written(self) -> bool:
        """Whether all partitions of the run are written."""
        return self._by_text.keys() <= self._claimed

    def _store(self, frame: Frame, keys: Sequence[PartitionKey], *, single_partition: bool) -> None:
        """Store the rows of partitions; of one partition with ``single_partition``."""
        raise NotImplementedError

    def _keys_to_write(self, partition: object) -> Sequence[PartitionKey]:
        if isinstance(self.definition, PartitionAtRuntime) and self.finds_partitions:
            if partition is None:
                raise PartitionKeyError(
                    f"this run covers no partition of {self.name}: name the partition of"
                    " the rows: self.write(frame, partition=key)"
                )
            return [runtime_key(self.definition, partition)]
        if partition is None:
            return self.keys
        wanted_key = PartitionKey.of(partition)
        key = self._by_text.get(wanted_key.text)
        if self.definition is None or key is None or partition not in (key, key.text):
            raise PartitionKeyError(
                f"this run does not write {partition!r}, a partition of {self.name}"
            )
        return [key]

    def _claim(self, keys: Sequence[PartitionKey]) -> None:
        """Mark partitions as written. Threads may write different partitions at the same time.

        Raises ValueError for a partition that is written already.
        """
        with self._lock:
            repeated_keys = [key.text for key in keys if key.text in self._claimed]
            if repeated_keys:
                subject = (
                    f"the partition {repeated_keys[0]} of {self.name}"
                    if repeated_keys[0]
                    else self.name
                )
                raise ValueError(f"{subject} is written already; a run writes each partition once")
            self._claimed.update(key.text for key in keys)


class OwnAssetHandle(WritableHandle):
    """An asset that the run materializes: written data stays in staging until the run succeeds."""

    def __init__(
        self,
        name: str,
        *,
        writer: Writer,
        present: Callable[[Sequence[str]], Collection[str]] | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(name, **facts)
        self._writer = writer
        self._present = present
        self.staged: list[Staged] = []
        """The partitions written so far."""

    def _absent(self, keys: Sequence[str]) -> list[str]:
        present = set(keys if self._present is None else self._present(keys))
        return [key for key in keys if key not in present]

    @cached_property
    def can_write(self) -> bool:
        """Whether an installed storage handles the asset's URI."""
        return find_storage(self.canonical_uri) is not None

    @property
    def must_write(self) -> bool:
        """Whether the function has to write through the handle, having no means of its own."""
        return self.can_write and self._storage.must_write

    @property
    def staging(self) -> str:
        """Where the written data waits for publication."""
        return self._storage.staging(self._writer, partitioned=self.definition is not None)

    def read_staged(self, only: Sequence[Staged] | None = None) -> Frame:
        """Return all or some of the written partitions as readers will see the data once published.

        Raises ValueError when no partition has been written.
        """
        partitions = self.staged if only is None else only
        if not partitions:
            raise ValueError(f"this run has written no data of {self.name} that could be read")
        return self._storage.read_staged(self._session(), self.definition, partitions, self._writer)

    def _store(self, frame: Frame, keys: Sequence[PartitionKey], *, single_partition: bool) -> None:
        if not spark.is_frame(frame):
            raise TypeError(
                f"a Spark DataFrame is written to {self.name}, not {type(frame).__name__}"
            )
        if not self.can_write:
            raise ValueError(f"{self.name} cannot be written: its uri is {self._shown_uri}")
        self.staged += self._storage.stage(
            frame, self.definition, keys, self._writer, single_partition=single_partition
        )


class Outlets(Mapping[str, WritableHandle]):
    """The assets that one function materializes together, by name (AIP-75, multi-assets)."""

    def __init__(self, handles: Iterable[WritableHandle]) -> None:
        self._handles = {handle.name: handle for handle in handles}

    def __getitem__(self, name: str) -> WritableHandle:
        if name not in self._handles:
            raise KeyError(f"{name!r} is no outlet; the outlets are {', '.join(self._handles)}")
        return self._handles[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._handles)

    def __len__(self) -> int:
        return len(self._handles)

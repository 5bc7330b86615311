"""What a function is given for an asset: its name, its partitions in this run, and its data."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from slicewise import spark
from slicewise.arguments import near
from slicewise.by_sequence import PartitionAtRuntime
from slicewise.declared import AssetColumn
from slicewise.definitions import PartitionDefinition
from slicewise.discovery import Discoveries, runtime_key
from slicewise.errors import PartitionKeyError
from slicewise.frames import within
from slicewise.io import Place, Staged, Storage, Writer, find_storage, storage_at
from slicewise.io.recorded import LostDataError, Records, find_differences, lost_data_sentence
from slicewise.keys import PartitionKey
from slicewise.masking import masked_uri
from slicewise.options import Outside, WriteMode
from slicewise.plain_values import readable
from slicewise.snapshots import named_key
from slicewise.uris import checked_place, uri_path

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

_NAMED_AT_MOST = 5
_EARLIER = "Partitions that were made before are read by self.read(partition=...)"

Frame = Any  # a DataFrame of pyspark, which is not imported for the sake of a type


class MissingPartitionsError(ValueError):
    """Upstream partitions that a run needs and that have not been made, or do not exist."""


class AssetHandle:
    """An asset as a run sees it. `partitions` are those that the run touches."""

    def __init__(
        self,
        name: str,
        *,
        uri: str | None,
        definition: PartitionDefinition | None,
        keys: Sequence[PartitionKey] | Callable[[], Sequence[PartitionKey]],
        session: Callable[[], "SparkSession"],
        missing: Sequence[str] = (),
        records: Records | None = None,
        nonexistent: Mapping[str, Any] | None = None,
        excluded: int = 0,
        format: str | None = None,
        columns: Sequence[Mapping[str, Any]] | None = None,
        write_mode: WriteMode = "replace",
        connection: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.uri = uri
        self.canonical_uri = None if uri is None else checked_place(uri)[0]
        self.definition = definition
        self._keys = keys
        self._missing = tuple(missing)
        self._records = records
        self._is_checked = False
        self._nonexistent, self._excluded = nonexistent, excluded
        self._session = session
        self._place = Place(
            uri=self.canonical_uri or "",
            asset=name,
            format=format,
            columns=columns or (),
            write_mode=write_mode,
            connection=connection or {},
        )

    def __repr__(self) -> str:
        return f"<asset {self.name}, {len(self.keys)} partitions>"

    def __getattr__(self, name: str) -> AssetColumn:
        # Asked only where there is no such attribute; copy and pickle ask before there are any.
        if name.startswith("_") or "_place" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self.column(name)

    def column(self, name: str) -> AssetColumn:
        """Return a declared column, also one that an attribute of the handle hides (``name``).

        Its text is its name. Raises AttributeError for a column that is not declared.
        """
        columns = [str(column["name"]) for column in self._place.columns]
        if name in columns:
            return AssetColumn(self.name, name)
        methods = [method for method in dir(type(self)) if not method.startswith("_")]
        raise AttributeError(
            f"the asset {self.name!r} has no {name!r} in a run, as attribute or as declared"
            f" column; {near(name, [*methods, *columns])}"
        )

    @cached_property
    def keys(self) -> tuple[PartitionKey, ...]:
        """The keys of the partitions, in order."""
        return tuple(self._keys() if callable(self._keys) else self._keys)

    @property
    def partitions(self) -> tuple[Any, ...]:
        """Intervals, plain values or keys of products, in order."""
        return tuple(key.value for key in self.keys)

    def read(self, *, version: int | None = None) -> Frame:
        """Return a Spark DataFrame of just these partitions; partition columns are texts.

        ``version`` is the number of an older version of each, of an asset with
        ``write_mode="version"``; otherwise it is the latest. Raises MissingPartitionsError when the
        run needs partitions that have not been made or do not exist, LostDataError where files of
        them are missing or changed since they were published, and ValueError for a version that is
        not there, and where nothing reads URIs of the asset's scheme.
        """
        if self._missing or self._nonexistent:
            raise MissingPartitionsError(self._missing_sentence())
        if not self.keys:
            raise MissingPartitionsError(self._nothing_sentence())
        self._refuse_version(version)
        if version is None and not self._is_checked:
            self._refuse_lost_data(self.keys)
            self._is_checked = True
        return self._storage.read(self._session(), self.definition, self.keys, version=version)

    def _refuse_version(self, version: int | None) -> None:
        if version is not None and "version" not in self._storage.write_modes:
            raise ValueError(f"{self.name} keeps no versions at {self._shown_uri}")

    def _refuse_lost_data(self, keys: Sequence[PartitionKey]) -> None:
        """Raises LostDataError where partitions are not as they were recorded."""
        if self._records is None or not self._storage.measures_cheaply:
            return
        differing = find_differences(self._storage, self.definition, keys, self._records)
        if differing:
            raise LostDataError(lost_data_sentence(self.name, differing))

    @cached_property
    def _storage(self) -> Storage:
        if self.canonical_uri is None:
            raise ValueError(f"the asset {self.name!r} has no uri")
        return storage_at(self._place)

    @property
    def _shown_uri(self) -> str:
        return repr(None if self.uri is None else masked_uri(self.uri))

    def write(self, frame: Frame, *, partition: object = None) -> None:
        """Always a TypeError: only the run's own asset is written."""
        raise TypeError(f"{self.name} is read by this run; only the run's own asset is written")

    def path(self) -> Path:
        """The folder of the asset's data. Raises ValueError for a URI that is not of a file."""
        if self.canonical_uri is None:
            raise ValueError(f"the asset {self.name!r} has no uri")
        return uri_path(self.canonical_uri)

    def _nothing_sentence(self) -> str:
        why = (
            f"all {self._excluded} partitions of it that this run would need are excluded"
            if self._excluded
            else "this run needs no partition of it"
        )
        return (
            f"there is nothing of {self.name} to read: {why}. Ask first, `if"
            f" {self.name}.partitions:`, or say in upstream= of the asset which partitions it needs"
        )

    def _missing_sentence(self) -> str:
        if self._nonexistent:
            count, first, last = (self._nonexistent[of] for of in ("partitions", "first", "last"))
            return (
                f"{count} {'partition' if count == 1 else 'partitions'} of {self.name} that this"
                f" run needs {'does' if count == 1 else 'do'} not exist: {first}"
                f"{f' to {last}' if last != first else ''}. To make do with those that exist,"
                f' map it with nonexistent="ignore"'
            )
        count = len(self._missing)
        which, have = ("partition", "has") if count == 1 else ("partitions", "have")
        return (
            f"{count} {which} of {self.name} that this run needs {have} not been made:"
            f" {_some(self._missing)}"
        )


class WritableHandle(AssetHandle):
    """An asset that the run makes: each of its partitions can be written, once."""

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

    def read(self, *, version: int | None = None, partition: object = None) -> Frame:
        """Return a Spark DataFrame of partitions of the asset: of the run's own, those that
        are there.

        ``partition`` is a key, or a list of keys, each as `write` takes it or as
        `iter_past_partitions` gives it: any partitions but those that this run makes. Raises
        PartitionKeyError for these and for what is no partition, MissingPartitionsError for
        partitions that have not been made, and otherwise what reading an upstream asset raises.
        """
        if partition is None:
            return self._read_own(version)
        keys = self._keys_to_read(partition)
        self._refuse_version(version)
        missing = self._absent([key.text for key in keys])
        if missing:
            raise MissingPartitionsError(
                f"partitions of {self.name} that this run reads have not been made:"
                f" {_some(missing)}"
            )
        return self._read_earlier(keys, version)

    def _read_own(self, version: int | None) -> Frame:
        """What runs before this one have made of its partitions."""
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
            f"there is nothing of {self.name} to read: this run is to find partitions and covers"
            f" none. {_EARLIER}"
        )

    def _not_there_sentence(self, absent: Sequence[str]) -> str:
        if self.definition is None:
            return (
                f"there is nothing of {self.name} to read: no data of it is on record, and"
                " self.read() reads what a run before this one has made"
            )
        return (
            f"there is nothing to read of {_some(absent)} of {self.name}: no data of"
            f" {'it' if len(absent) == 1 else 'these'} is on record. {_EARLIER}"
        )

    def _keys_to_read(self, partition: object) -> list[PartitionKey]:
        """The keys of partitions to read. Raises PartitionKeyError."""
        items = list(partition) if isinstance(partition, list) else [partition]
        if self.definition is None:
            raise PartitionKeyError(f"{self.name} is not partitioned; leave partition out")
        if not items:
            raise PartitionKeyError("partition=[] names no partition to read")
        keys = list(dict.fromkeys(self._key_to_read(item) for item in items))
        own = [key.text for key in keys if key.text in self._by_text]
        if own:
            raise PartitionKeyError(
                f"this run makes {_some(own)} of {self.name}: read(partition=...) reads partitions"
                " that were made before, not those that the run is making"
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
        """Those of the partitions that have not been made."""
        return []

    def _read_earlier(self, keys: Sequence[PartitionKey], version: int | None) -> Frame:
        """Partitions that are there."""
        if version is None:
            self._refuse_lost_data(keys)
        return self._storage.read(self._session(), self.definition, keys, version=version)

    @property
    def can_write(self) -> bool:
        """Whether the asset's data lies where it can be written."""
        return True

    @property
    def must_write(self) -> bool:
        """Whether a run that writes nothing of it is at fault."""
        return self.can_write

    @property
    def finds_partitions(self) -> bool:
        """Whether the run covers no partition of the asset, and is there to find some."""
        return isinstance(self.definition, PartitionAtRuntime) and not self.keys

    def write(self, frame: Frame, *, partition: object = None) -> None:
        """Write the run's partitions, to be published when the run has succeeded.

        A frame for several partitions carries one column per dimension: texts of keys, or times
        inside the windows. ``partition`` says that the whole frame belongs to one partition: to one
        of the run's or, in a run that covers none, to any key of the asset's `PartitionAtRuntime`,
        which the run adds thereby. Each partition is written once. Raises RowsError for rows
        outside the partitions, PartitionKeyError for a key that the run does not make.
        """
        keys = self._keys_to_write(partition)
        self._claim(keys)
        try:
            if self._outside == "drop" and partition is None and spark.is_frame(frame):
                frame = within(frame, self.definition, keys, keeps_null=True)
            self._store(frame, keys, apart=partition is not None)
        except BaseException:
            self._claimed.difference_update(key.text for key in keys)
            raise
        if self.finds_partitions:
            self._discoveries.add(self.definition, keys[0])

    def check_complete(self) -> None:
        """Raise ValueError, which names them, when partitions of the run are not written."""
        missing = [text for text in self._by_text if text not in self._claimed]
        if not missing or not self.can_write or not (self._claimed or self.must_write):
            return
        if not self._claimed:
            raise ValueError(
                f"the function of {self.name} returned nothing and wrote nothing; return a"
                " DataFrame, or call self.write"
            )
        words = (
            "1 partition of {} is"
            if len(missing) == 1
            else f"{len(missing)} partitions of {{}} are"
        )
        raise ValueError(f"{words.format(self.name)} not written: {_some(missing)}")

    @property
    def is_written(self) -> bool:
        """Whether nothing is left to write."""
        return self._by_text.keys() <= self._claimed

    def _store(self, frame: Frame, keys: Sequence[PartitionKey], *, apart: bool) -> None:
        """Takes the rows of these partitions; ``apart`` from those of others."""
        raise NotImplementedError

    def _keys_to_write(self, partition: object) -> Sequence[PartitionKey]:
        if isinstance(self.definition, PartitionAtRuntime) and self.finds_partitions:
            if partition is None:
                raise PartitionKeyError(
                    f"this run covers no partition of {self.name}: say to which one the rows"
                    " belong, self.write(frame, partition=key)"
                )
            return [runtime_key(self.definition, partition)]
        if partition is None:
            return self.keys
        wanted = PartitionKey.of(partition)
        found = self._by_text.get(wanted.text)
        if self.definition is None or found is None or partition not in (found, found.text):
            raise PartitionKeyError(
                f"this run does not make {partition!r}, a partition of {self.name}"
            )
        return [found]

    def _claim(self, keys: Sequence[PartitionKey]) -> None:
        """Threads may write partitions side by side, but each partition once."""
        with self._lock:
            again = [key.text for key in keys if key.text in self._claimed]
            if again:
                which = f"the partition {again[0]} of {self.name}" if again[0] else self.name
                raise ValueError(f"{which} is written already; one run writes it once")
            self._claimed.update(key.text for key in keys)


class OwnAssetHandle(WritableHandle):
    """An asset that the run makes: what is written waits until the run has succeeded."""

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
        """What has been written."""

    def _absent(self, keys: Sequence[str]) -> list[str]:
        present = set(keys if self._present is None else self._present(keys))
        return [key for key in keys if key not in present]

    @cached_property
    def can_write(self) -> bool:
        """Whether something here keeps data at its URI."""
        return find_storage(self.canonical_uri) is not None

    @property
    def must_write(self) -> bool:
        """Whether a function that writes nothing has not written by means of its own."""
        return self.can_write and self._storage.must_write

    @property
    def staging(self) -> str:
        """Where it waits."""
        return self._storage.staging(self._writer, partitioned=self.definition is not None)

    def read_staged(self, only: Sequence[Staged] | None = None) -> Frame:
        """Return all that has been written, or some of it, as it will be read once it is published.

        Raises ValueError when nothing has.
        """
        wanted = self.staged if only is None else only
        if not wanted:
            raise ValueError(f"nothing of {self.name} has been written that could be read")
        return self._storage.read_staged(self._session(), self.definition, wanted, self._writer)

    def _store(self, frame: Frame, keys: Sequence[PartitionKey], *, apart: bool) -> None:
        if not spark.is_frame(frame):
            raise TypeError(
                f"a Spark DataFrame is written to {self.name}, not {type(frame).__name__}"
            )
        if not self.can_write:
            raise ValueError(f"{self.name} cannot be written: its uri is {self._shown_uri}")
        self.staged += self._storage.stage(frame, self.definition, keys, self._writer, apart=apart)


class Outlets(Mapping[str, WritableHandle]):
    """The assets that one function makes together, by name (AIP-75, multi-assets)."""

    def __init__(self, handles: Iterable[WritableHandle]) -> None:
        self._handles = {handle.name: handle for handle in handles}

    def __getitem__(self, name: str) -> WritableHandle:
        if name not in self._handles:
            raise KeyError(f"{name!r} is no outlet; there are {', '.join(self._handles)}")
        return self._handles[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._handles)

    def __len__(self) -> int:
        return len(self._handles)


def _some(texts: Sequence[str]) -> str:
    rest = len(texts) - _NAMED_AT_MOST
    names = (readable(text) or "the whole asset" for text in texts[:_NAMED_AT_MOST])
    return ", ".join(names) + (f" and {rest} more" if rest > 0 else "")

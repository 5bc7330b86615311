"""What a storage is, and how the one of a URI is found."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar

from slicewise import plugins
from slicewise.definitions import PartitionDefinition
from slicewise.folders import key_folder
from slicewise.keys import PartitionKey
from slicewise.options import WriteMode
from slicewise.storage.errors import StorageError

Frame = Any  # a DataFrame of pyspark, which is not imported for the sake of a type
Session = Any

# Loaded when a URI asks for them: what reads and writes is not needed where assets are declared.
_BUILT_IN = {
    "file": "slicewise.io.file:FileStorage",
    "gcs": "slicewise.io.objects:GcsStorage",
    "s3": "slicewise.io.objects:S3Storage",
    "postgres": "slicewise.io.postgres:PostgresStorage",
}


class NoStorageError(ValueError):
    """Nothing here keeps data at such a URI: the asset's function reads and writes by itself."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the data of one asset is, and how it is kept there."""

    uri: str
    """The canonical URI; for a folder of this machine its path serves as well."""
    asset: str = ""
    """The asset's name, for sentences."""
    format: str | None = None
    """How files are written, where there are files; None: as the URI's extension says."""
    columns: Sequence[Mapping[str, Any]] = ()
    """Declared columns, ``{"name": ..., "type": ...}`` each."""
    write_mode: WriteMode = "replace"
    connection: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What a gateway knows of this place: logins, options. Empty where nothing is configured."""


@dataclass(frozen=True, kw_only=True)
class Writer:
    """An attempt, as it is known where data is kept.

    ``attempt`` is one that no other attempt has, of whatever database. ``fence`` is the fencing
    number of the process that holds the attempt now: who takes it over has a higher one than those
    before. ``earlier`` are the names of the attempts at the same run before it.
    """

    run_id: int
    attempt: str
    fence: int = 1
    earlier: Sequence[str] = ()


@dataclass(frozen=True)
class Staged:
    """One partition as it waits: key text, path (relative to the asset), rows and bytes."""

    key: str
    path: str
    rows: int
    bytes: int

    def to_json(self) -> dict[str, Any]:
        """As the runner reports it."""
        return {"key": self.key, "path": self.path, "rows": self.rows, "bytes": self.bytes}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """How much data a partition has; None for what the storage does not count."""

    bytes: int | None = None
    rows: int | None = None


class Storage(ABC):
    """Keeps the data of one asset; a subclass for each scheme of URIs.

    A run is made in two processes. The *runner*, which has Spark and in which the asset's function
    runs, calls `read`, `stage` and `read_staged`. The *worker*, which has neither, calls `check`,
    `publish`, `published` and `discard`, when it has committed its intent to publish.

    What `stage` has written must not be seen by readers before `publish`. `publish` may be called
    again after a crash, by another process with a higher fencing number: a partition that this
    attempt has published is left alone, and a process with a lower number than the highest that
    `check` or `publish` was called with must change nothing any more.
    Of each partition readers see the old data or the new.

    Packages bring others by the entry point group ``slicewise.io``: the name is the scheme, the
    value a subclass declared with ``kind="that scheme"``.
    """

    kind: ClassVar[str] = ""
    """The canonical scheme."""
    formats: ClassVar[Sequence[str]] = ()
    """What ``format=`` may say; the first one is written where nothing is said."""
    write_modes: ClassVar[Sequence[WriteMode]] = ("replace",)
    must_write: ClassVar[bool] = False
    """Whether a function that neither returns nor writes anything is at fault. Else it has written
    by itself, by means of its own."""
    measures_cheaply: ClassVar[bool] = False
    """Whether `measure` costs no more than a listing, so that each read can begin with it."""

    keeps_cuts_apart: ClassVar[bool] = False
    """Whether partitions of other dimensions, as an earlier cut had, share no data with these."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def __init_subclass__(cls, *, kind: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        if kind:
            cls.kind = kind
            plugins.register(plugins.IO, kind, cls)

    @classmethod
    def problem(cls, uri: str, *, partitioned: bool) -> str | None:
        """What keeps an asset from being kept at this canonical URI; None where nothing does.

        Asked when the asset is declared, so that it is refused there.
        """
        return None

    @property
    def is_remote(self) -> bool:
        """Whether a server keeps the data, which is reached by a login and not by the rights of a
        user of this host.

        A worker that is root works on other data by a process of the user that runs have.
        """
        return False

    def refuse_place(self) -> None:
        """Raise UnfitPlaceError where nothing could be published at this place.

        Asked by the worker before a run begins. Any other error says that this cannot be told: the
        attempt ends before its code begins, as a failure of the platform.
        """
        return

    @classmethod
    def partition_path(cls, definition: PartitionDefinition | None, key: PartitionKey) -> str:
        """Return the path of a partition as `stage` says it, relative to the asset.

        The worker computes it as well, and refuses a run whose runner says another one.
        """
        return key_folder(definition, key)

    @abstractmethod
    def staging(self, writer: Writer, *, partitioned: bool) -> str:
        """Return where an attempt's data waits, as a text that `publish` understands.

        Computed of place and writer alone. The worker computes it as well, and refuses a run whose
        runner says another one.
        """

    @abstractmethod
    def read(
        self,
        session: Session,
        definition: PartitionDefinition | None,
        keys: Sequence[PartitionKey],
        *,
        version: int | None = None,
    ) -> Frame:
        """Return a frame of just these partitions; dimensions are columns of texts."""

    @abstractmethod
    def stage(
        self,
        frame: Frame,
        definition: PartitionDefinition | None,
        keys: Sequence[PartitionKey],
        writer: Writer,
        *,
        apart: bool,
    ) -> list[Staged]:
        """Write the rows of a frame to where they wait, each into its own partition.

        ``apart``: the frame is of one partition, and others are staged by other calls. Raises
        RowsError for rows of no partition of the run; nothing of the frame is kept then.
        """

    @abstractmethod
    def read_staged(
        self,
        session: Session,
        definition: PartitionDefinition | None,
        staged: Sequence[Staged],
        writer: Writer,
    ) -> Frame:
        """What has been staged, as it will be read once it is published."""

    @abstractmethod
    def publish(
        self, staging: str, partitions: Sequence[Mapping[str, Any]], writer: Writer
    ) -> Mapping[str, Mapping[str, Any]]:
        """Put staged partitions (``key``, ``path``) in place; facts for the record, by path.

        Raises `slicewise.storage.StorageError` for what will never succeed, OSError for what may
        when it is tried again. Anything else that it raises counts as the former.
        """

    def check(self, staging: str, partitions: Sequence[Mapping[str, Any]], writer: Writer) -> None:
        """Raise what `publish` would, as far as that can be seen before data is put in place.

        Called before anything is published of several assets, and again when a publication has
        failed and before it is recorded as that: from then on no process with a lower fencing
        number may change anything.
        """
        return

    @abstractmethod
    def published(self, paths: Sequence[str], writer: Writer) -> list[str]:
        """Those of the paths at which this attempt's data is in place."""

    @abstractmethod
    def discard(self, writer: Writer) -> None:
        """Remove what the attempt has staged, whoever holds it. Nothing staged is no error.

        Called again some time after an attempt has come to nothing: a write that went on meanwhile
        may have left something.
        """

    def is_reachable(self) -> bool:
        """Return whether this process sees the place of the data, partitions or none."""
        return True

    def measure(self, paths: Sequence[str]) -> Mapping[str, Measured | None] | None:
        """Return how much data partitions have, by path: None for one without data, and None
        altogether where the storage cannot say.
        """
        return None

    def remove(self, writers: Mapping[str, Sequence[Writer]]) -> Mapping[str, str]:
        """Remove the data of partitions, by their paths with the attempts that are on record as
        their last ones. Return why data was kept, by path.

        Data that none of these attempts has published is kept; data that is not there is no error.
        May be called again after a crash. Raises `slicewise.storage.StorageError` where the storage
        does not remove partitions, and OSError for what may succeed later.
        """
        raise StorageError(f"what keeps {self.place.uri} does not remove partitions")


plugins.register_base(plugins.IO, Storage, reserved=_BUILT_IN)


def scheme_of(uri: str) -> str:
    """Return the scheme of a canonical URI; of a path, ``file``. Empty for any other text."""
    if uri.startswith(("/", "file:/")):
        return "file"
    scheme, found, _ = uri.partition("://")
    return scheme.lower() if found else ""


def find_storage(uri: str | None) -> type[Storage] | None:
    """What keeps data at a canonical URI; None where nothing that is installed does.

    Raises PluginError for a package that brings it and cannot be used.
    """
    scheme = scheme_of(uri or "")
    if scheme in _BUILT_IN:
        module, _, name = _BUILT_IN[scheme].partition(":")
        built_in: type[Storage] = getattr(import_module(module), name)
        return built_in
    if not scheme or not plugins.has(plugins.IO, scheme):
        return None
    found: type[Storage] = plugins.find(plugins.IO, scheme)
    return found


def storage_at(place: Place) -> Storage:
    """Return the storage of a place. Raises NoStorageError."""
    cls = find_storage(place.uri)
    if cls is None:
        scheme = scheme_of(place.uri) or "such"
        raise NoStorageError(f"nothing here reads and writes {scheme}: URIs, as {place.uri}")
    return cls(place)

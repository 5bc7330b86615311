"""The base class of storages, and the lookup of the storage of a URI."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar, Literal

from slicewise import plugins
from slicewise.keys.partition_key import PartitionKey
from slicewise.partitions.definition import PartitionDefinition
from slicewise.partitions.partition_paths import key_folder
from slicewise.storage.storage_errors import StorageError

Frame = Any  # a DataFrame of pyspark, which is not imported for the sake of a type
Session = Any
WriteMode = Literal["replace", "append", "version"]

# Loaded when a URI needs them: the declaration of assets needs no code that reads and writes.
_BUILT_IN = {
    "file": "slicewise.io.file:FileStorage",
    "gcs": "slicewise.io.objects:GcsStorage",
    "s3": "slicewise.io.objects:S3Storage",
    "postgres": "slicewise.io.postgres:PostgresStorage",
}


class NoStorageError(ValueError):
    """No installed storage serves such a URI: the asset's function reads and writes by itself."""


@dataclass(frozen=True, kw_only=True)
class StorageLocation:
    """The location of one asset's data, and the settings with which the data is stored there."""

    uri: str
    """The canonical URI; for a folder of this machine the path serves as well."""
    asset: str = ""
    """The asset's name, for error messages."""
    format: str | None = None
    """The format of the files, where there are files; None: the format of the URI's extension."""
    columns: Sequence[Mapping[str, Any]] = ()
    """Declared columns, ``{"name": ..., "type": ...}`` each."""
    write_mode: WriteMode = "replace"
    connection: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The gateway's settings for the location: logins, options. Empty where none are configured."""


@dataclass(frozen=True, kw_only=True)
class Writer:
    """An attempt, as storages identify it.

    ``attempt`` is a name that no other attempt has, of any database. ``fence`` is the fencing
    number of the process that holds the attempt now: a process that takes the attempt over has a
    higher number than all holders before. ``earlier`` are the names of the earlier attempts at the
    same run.
    """

    run_id: int
    attempt: str
    fence: int = 1
    earlier: Sequence[str] = ()


@dataclass(frozen=True)
class Staged:
    """A staged partition: key text, path (relative to the asset), rows and bytes."""

    key: str
    path: str
    rows: int
    bytes: int

    def to_json(self) -> dict[str, Any]:
        """Return the staged partition as JSON, in the form of a runner's report."""
        return {"key": self.key, "path": self.path, "rows": self.rows, "bytes": self.bytes}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The amount of data of a partition; None for a number that the storage does not count."""

    bytes: int | None = None
    rows: int | None = None
    files: int | None = None


class Storage(ABC):
    """The storage of one asset's data, with a subclass for each scheme of URIs.

    A run is executed by two processes. The *runner*, which has Spark and calls the asset's
    function, calls `read`, `stage` and `read_staged`. The *worker*, which has neither, calls
    `check`, `publish`, `published` and `discard`, once the worker has committed its intent to
    publish.

    Readers must not see staged data before `publish`. `publish` may be called again after a crash,
    by another process with a higher fencing number: a partition that this attempt has published is
    left alone, and a process with a lower number than the highest that `check` or `publish` was
    called with must change nothing any more. Of each partition readers see the old data or the new.

    Packages add storages by the entry point group ``slicewise.io``: the name is the scheme, the
    value a subclass declared with ``kind="that scheme"``.
    """

    kind: ClassVar[str] = ""
    """The canonical scheme."""
    formats: ClassVar[Sequence[str]] = ()
    """The values that ``format=`` accepts; the first is the default."""
    write_modes: ClassVar[Sequence[WriteMode]] = ("replace",)
    must_write: ClassVar[bool] = False
    """Whether a function that neither returns nor writes anything is at fault. Otherwise such a
    function is taken to have written the data by means of its own.
    """
    measures_cheaply: ClassVar[bool] = False
    """Whether `measure` costs no more than a listing, so that each read can begin with it."""

    keeps_definitions_apart: ClassVar[bool] = False
    """Whether partitions with other dimensions, as an earlier partitioning had, share no data with
    the present partitions.
    """

    def __init__(self, location: StorageLocation) -> None:
        self.location = location

    def __init_subclass__(cls, *, kind: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        if kind:
            cls.kind = kind
            plugins.register(plugins.IO, kind, cls)

    @classmethod
    def problem(cls, uri: str, *, partitioned: bool) -> str | None:
        """Return why an asset cannot be stored at this canonical URI; None if there is no reason.

        Called when the asset is declared, so that the declaration is refused.
        """
        return None

    @property
    def is_remote(self) -> bool:
        """Whether a server stores the data, which is reached by a login and not by the rights of a
        user of this host.

        A worker that is root works on other data by a process with the user of runs.
        """
        return False

    def refuse_unfit_location(self) -> None:
        """Raise UnfitLocationError if no data can be published at this location.

        Called by the worker before a run begins. Any other error means that the check itself
        failed: the attempt ends before the asset's code begins, as a failure of the platform.
        """
        return

    @classmethod
    def partition_path(cls, definition: PartitionDefinition | None, key: PartitionKey) -> str:
        """Return the path of a partition in the reports of `stage`, relative to the asset.

        The worker computes the path as well, and refuses a run whose runner reports another path.
        """
        return key_folder(definition, key)

    @abstractmethod
    def staging(self, writer: Writer, *, partitioned: bool) -> str:
        """Return the location of an attempt's staged data, as a text that `publish` understands.

        Computed from location and writer alone. The worker computes the text as well, and refuses a
        run whose runner reports another text.
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
        """Return a frame of exactly these partitions; dimensions are columns of texts."""

    @abstractmethod
    def stage(
        self,
        frame: Frame,
        definition: PartitionDefinition | None,
        keys: Sequence[PartitionKey],
        writer: Writer,
        *,
        single_partition: bool,
    ) -> list[Staged]:
        """Write the rows of a frame as staged data, each row in its partition; return the
        partitions.

        ``single_partition``: the frame holds one partition, and other calls stage other partitions.
        Raises RowsError for rows of no partition of the run; nothing of the frame is kept in that
        case.
        """

    @abstractmethod
    def read_staged(
        self,
        session: Session,
        definition: PartitionDefinition | None,
        staged: Sequence[Staged],
        writer: Writer,
    ) -> Frame:
        """Return the staged data as readers will see it after publication."""

    @abstractmethod
    def publish(
        self, staging: str, partitions: Sequence[Mapping[str, Any]], writer: Writer
    ) -> Mapping[str, Mapping[str, Any]]:
        """Publish staged partitions (``key``, ``path``); return facts for the record, by path.

        Raises `slicewise.storage.StorageError` for a publication that will never succeed, and
        `slicewise.storage.TryAgainError` for a publication that may succeed later. ConnectionError,
        TimeoutError, and an OSError with the number of an error that passes, such as ENOSPC or EIO,
        count as the latter; any other error counts as the former.
        """

    def check(self, staging: str, partitions: Sequence[Mapping[str, Any]], writer: Writer) -> None:
        """Raise the error that `publish` would raise, as far as the error can be foreseen.

        Called before any data of several assets is published, and again after a failed publication,
        before the failure is recorded: from then on no process with a lower fencing number may
        change anything.
        """
        return

    @abstractmethod
    def published(self, paths: Sequence[str], writer: Writer) -> list[str]:
        """Return the paths at which this attempt's data is in place."""

    @abstractmethod
    def discard(self, writer: Writer) -> None:
        """Remove an attempt's staged data, whichever process holds the attempt;
        nothing staged is no error.

        Called again some time after an attempt has failed: a write that was still under way may
        have left data. Raises OSError if some data could not be removed: the call comes again.
        """

    def has_remains(self, writer: Writer) -> bool:
        """Return whether `publish` has left data that it could not remove, under the fencing number
        of the writer. Then `discard` is called some time later.
        """
        return False

    def is_reachable(self) -> bool:
        """Return whether this process can reach the data's location, partitions or none."""
        return True

    def measure(self, paths: Sequence[str]) -> Mapping[str, Measured | None] | None:
        """Return the amount of data of partitions, by path: None for a partition without data, and
        None altogether if the storage cannot count.
        """
        return None

    def remove(self, writers: Mapping[str, Sequence[Writer]]) -> Mapping[str, str]:
        """Remove the data of partitions, given by path with the attempts on record as the last
        ones. Return the reasons why data was kept, by path.

        Data that none of these attempts has published is kept; missing data is no error. May be
        called again after a crash. Raises `slicewise.storage.StorageError` if the storage does not
        remove partitions, and OSError for a removal that may succeed later.
        """
        raise StorageError(f"the storage of {self.location.uri} cannot remove partitions")


plugins.register_base(plugins.IO, Storage, reserved=_BUILT_IN)


def scheme_of(uri: str) -> str:
    """Return the scheme of a canonical URI; of a path, ``file``. Empty for any other text."""
    if uri.startswith(("/", "file:/")):
        return "file"
    scheme, separator, _ = uri.partition("://")
    return scheme.lower() if separator else ""


def find_storage(uri: str | None) -> type[Storage] | None:
    """Return the storage class for a canonical URI; None if none is installed.

    Raises PluginError for a package that declares a storage for the scheme and cannot be used.
    """
    scheme = scheme_of(uri or "")
    if scheme in _BUILT_IN:
        module, _, name = _BUILT_IN[scheme].partition(":")
        built_in_class: type[Storage] = getattr(import_module(module), name)
        return built_in_class
    if not scheme or not plugins.has(plugins.IO, scheme):
        return None
    plugin_class: type[Storage] = plugins.find(plugins.IO, scheme)
    return plugin_class


def storage_at(location: StorageLocation) -> Storage:
    """Return the storage at a location. Raises NoStorageError."""
    cls = find_storage(location.uri)
    if cls is None:
        scheme = scheme_of(location.uri) or "such"
        raise NoStorageError(
            f"no installed storage reads and writes {scheme}: URIs, such as {location.uri}"
        )
    return cls(location)

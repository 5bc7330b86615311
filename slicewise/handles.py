"""What a function is given for an asset: its name, its partitions in this run, and its data."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slicewise import spark
from slicewise.definitions import PartitionDefinition
from slicewise.folders import key_folder
from slicewise.frames import Target, stage
from slicewise.keys import PartitionKey
from slicewise.uris import masked_uri, normalize_uri, uri_path

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

    from slicewise.frames import StagedPartition

_NAMED_AT_MOST = 5

Frame = Any  # a DataFrame of pyspark, which is not imported for the sake of a type


class MissingPartitionsError(ValueError):
    """Upstream partitions that a run needs and that have not been made."""


class AssetHandle:
    """An asset as a run sees it. `partitions` are those that the run touches."""

    def __init__(
        self,
        name: str,
        *,
        uri: str | None,
        definition: PartitionDefinition | None,
        keys: Sequence[PartitionKey],
        session: Callable[[], "SparkSession"],
        missing: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.uri = uri
        self.canonical_uri = None if uri is None else normalize_uri(uri)
        self.definition = definition
        self.keys = tuple(keys)
        self._missing = tuple(missing)
        self._session = session

    def __repr__(self) -> str:
        return f"<asset {self.name}, {len(self.keys)} partitions>"

    @property
    def partitions(self) -> tuple[Any, ...]:
        """Intervals, plain values or keys of products, in order."""
        return tuple(key.value for key in self.keys)

    def read(self) -> Frame:
        """A Spark DataFrame of just these partitions; partition columns are texts.

        Raises MissingPartitionsError when the run needs partitions that have not been made.
        """
        if self._missing:
            raise MissingPartitionsError(self._missing_sentence())
        root = self.path()
        folders = [key_folder(self.definition, key) for key in self.keys]
        if not folders:
            raise MissingPartitionsError(f"no partition of {self.name} is mapped to this run")
        reader = self._session().read
        # As Spark itself does it: by the first file.
        schema = spark.stored_schema(root / min(folders))
        if schema is not None:
            reader = reader.schema(schema)
        if self.definition is None:
            return reader.parquet(f"file://{root}")
        paths = [f"file://{root}/{folder}" for folder in folders]
        return reader.option("basePath", f"file://{root}").parquet(*paths)

    def write(self, frame: Frame) -> None:
        """Only the run's own asset is written."""
        raise TypeError(f"{self.name} is read by this run; only the run's own asset is written")

    def path(self) -> Path:
        """The folder of the asset's data. Raises ValueError for a URI that is not of a file."""
        if self.canonical_uri is None:
            raise ValueError(f"the asset {self.name!r} has no uri")
        return uri_path(self.canonical_uri)

    def _missing_sentence(self) -> str:
        shown = ", ".join(self._missing[:_NAMED_AT_MOST])
        rest = len(self._missing) - _NAMED_AT_MOST
        more = f" and {rest} more" if rest > 0 else ""
        return (
            f"{len(self._missing)} partitions of {self.name} that this run needs have not been"
            f" made: {shown}{more}"
        )


class OwnAssetHandle(AssetHandle):
    """The asset that the run makes: it can be written, once."""

    def __init__(self, name: str, *, marker: str, **facts: Any) -> None:
        super().__init__(name, **facts)
        self._marker = marker
        self.staging: Path | None = None
        self.staged: list[StagedPartition] | None = None
        """What has been written; None before `write`."""

    @property
    def can_write(self) -> bool:
        """Whether the asset's data lies where it can be written."""
        return self.staging is not None

    def stage_in(self, folder: Path) -> None:
        """What is written goes to this folder first."""
        self.staging = folder

    def write(self, frame: Frame) -> None:
        """Writes the run's partitions, to be published when the run has succeeded.

        A frame for several partitions carries one column per dimension: texts of keys, or times
        inside the windows. Raises RowsError for rows outside the run's partitions.
        """
        if not spark.is_frame(frame):
            raise TypeError(f"a Spark DataFrame is written, not {type(frame).__name__}")
        if self.staging is None:
            shown = None if self.uri is None else masked_uri(self.uri)
            raise ValueError(f"{self.name} cannot be written: its uri is {shown!r}")
        if self.staged is not None:
            raise ValueError(f"{self.name} is written already; one run writes once")
        target = Target(self.staging, self.definition, self.keys, self._marker)
        self.staged = stage(frame, target)

"""Handles, which a run passes to an asset's function: name, partitions and data of an asset."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slicewise.declaring.declared_asset import AssetColumn
from slicewise.io import Storage, StorageLocation, storage_at
from slicewise.io.base import WriteMode
from slicewise.io.recorded import LostDataError, Records, find_differences, lost_data_sentence
from slicewise.keys.partition_key import PartitionKey
from slicewise.keys.value_texts import readable
from slicewise.partitions.definition import PartitionDefinition
from slicewise.texts.hints import name_hint
from slicewise.texts.masking import masked_uri
from slicewise.uris.canonical import checked_location, uri_path

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

_MAX_SHOWN_KEYS = 5

Frame = Any  # a DataFrame of pyspark, which is not imported for the sake of a type


class MissingPartitionsError(ValueError):
    """Partitions that a run needs are not materialized, or do not exist."""


class AssetHandle:
    """An asset in a run. `partitions` are the partitions that the run touches."""

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
        self.canonical_uri = None if uri is None else checked_location(uri)[0]
        self.definition = definition
        self._keys = keys
        self._missing = tuple(missing)
        self._records = records
        self._is_checked = False
        self._nonexistent, self._excluded = nonexistent, excluded
        self._session = session
        self._location = StorageLocation(
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
        # Called only for missing attributes; copy and pickle call it before any attribute is set.
        if name.startswith("_") or "_location" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self.column(name)

    def column(self, name: str) -> AssetColumn:
        """Return a declared column, also a column that an attribute of the handle hides (``name``).

        The text of a column is the column's name. Raises AttributeError for a column that is not
        declared.
        """
        columns = [str(column["name"]) for column in self._location.columns]
        if name in columns:
            return AssetColumn(self.name, name)
        methods = [method for method in dir(type(self)) if not method.startswith("_")]
        raise AttributeError(
            f"the asset {self.name!r} has no {name!r} in a run, as attribute or as declared"
            f" column; {name_hint(name, [*methods, *columns])}"
        )

    @cached_property
    def keys(self) -> tuple[PartitionKey, ...]:
        """The keys of the partitions, in order."""
        return tuple(self._keys() if callable(self._keys) else self._keys)

    @property
    def partitions(self) -> tuple[Any, ...]:
        """The values of the keys, in order: intervals, plain values or keys of products."""
        return tuple(key.value for key in self.keys)

    def read(self, *, version: int | None = None) -> Frame:
        """Return a Spark DataFrame of just these partitions; partition columns are texts.

        ``version`` is the number of an older version of each partition, for an asset with
        ``write_mode="version"``; the default is the latest version. Raises MissingPartitionsError
        when the run needs partitions that are not materialized or do not exist, LostDataError when
        files of the partitions are missing or changed since publication, and ValueError for a
        version that does not exist, and when no storage reads URIs of the asset's scheme.
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
        """Raise LostDataError where the data of partitions differs from the record."""
        if self._records is None or not self._storage.measures_cheaply:
            return
        differing = find_differences(self._storage, self.definition, keys, self._records)
        if differing:
            raise LostDataError(lost_data_sentence(self.name, differing))

    @cached_property
    def _storage(self) -> Storage:
        if self.canonical_uri is None:
            raise ValueError(f"the asset {self.name!r} has no uri")
        return storage_at(self._location)

    @property
    def _shown_uri(self) -> str:
        return repr(None if self.uri is None else masked_uri(self.uri))

    def write(self, frame: Frame, *, partition: object = None) -> None:
        """Raise TypeError: a run writes only its own asset."""
        raise TypeError(f"{self.name} is read by this run; only the run's own asset is written")

    def path(self) -> Path:
        """Return the folder of the asset's data. Raises ValueError for a URI of another scheme
        than file.
        """
        if self.canonical_uri is None:
            raise ValueError(f"the asset {self.name!r} has no uri")
        return uri_path(self.canonical_uri)

    def _nothing_sentence(self) -> str:
        reason = (
            f"all {self._excluded} partitions that this run would need are excluded"
            if self._excluded
            else "this run needs no partition of the asset"
        )
        return (
            f"{self.name} has no data to read: {reason}. Check `if {self.name}.partitions:`"
            " before, or give upstream= a mapping to the needed partitions"
        )

    def _missing_sentence(self) -> str:
        if self._nonexistent:
            count, first, last = (
                self._nonexistent[field] for field in ("partitions", "first", "last")
            )
            return (
                f"{count} {'partition' if count == 1 else 'partitions'} of {self.name} that this"
                f" run needs {'does' if count == 1 else 'do'} not exist: {first}"
                f"{f' to {last}' if last != first else ''}. To read the partitions that"
                f' exist, map {self.name} with nonexistent="ignore"'
            )
        count = len(self._missing)
        noun, verb = ("partition", "is") if count == 1 else ("partitions", "are")
        return (
            f"{count} {noun} of {self.name} that this run needs {verb} not materialized:"
            f" {shown_keys(self._missing)}"
        )


def shown_keys(texts: Sequence[str]) -> str:
    """Return the first of some key texts, as people read them, and the number of the others."""
    more_count = len(texts) - _MAX_SHOWN_KEYS
    names = (readable(text) or "the whole asset" for text in texts[:_MAX_SHOWN_KEYS])
    return ", ".join(names) + (f" and {more_count} more" if more_count > 0 else "")

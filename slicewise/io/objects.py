"""``s3:`` and ``gcs:`` URIs: immutable files, and a log for each partition that says which count.

Object stores cannot exchange folders. To publish is to put one small object whose name says all:
a number, the mode and the attempt. A worker that wakes up late puts the same object again.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote, urlsplit

from slicewise.definitions import PartitionDefinition
from slicewise.folders import key_folder
from slicewise.io.appending import refuse_other_columns
from slicewise.io.base import Frame, Session, Staged, Storage, Writer
from slicewise.io.files import Files
from slicewise.io.formats import FORMATS, checked_format
from slicewise.io.reading import by_name, read
from slicewise.io.staging import Target, stage, stage_one
from slicewise.keys import PartitionKey
from slicewise.storage.errors import StagingLostError, TryAgainError
from slicewise.storage.layout import UNPARTITIONED
from slicewise.storage.modes import MissingVersionError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_COLUMN = "_slicewise_attempt"
_DATA, _LOG = "_slicewise/data", "_slicewise/log"
_ENTRY = re.compile(r"(\d{12})\.(replace|append|version|same)\.(.+)")
_LISTED_AT_ONCE = 16


@dataclass(frozen=True, order=True)
class _Entry:
    """One publication of a partition."""

    number: int
    attempt: str
    mode: str

    @property
    def name(self) -> str:
        return f"{self.number:012}.{self.mode}.{self.attempt}"


class ObjectStorage(Storage):
    """Files are written where they stay; readers follow the log."""

    formats = tuple(FORMATS)
    write_modes = ("replace", "append", "version")
    connector: ClassVar[str]
    """The scheme of Hadoop's connector."""
    arrow: ClassVar[str]
    """The scheme by which pyarrow knows the store."""

    def staging(self, writer: Writer, *, partitioned: bool) -> str:
        return f"{_DATA}/{_COLUMN}={_attempt(writer)}"

    def stage(
        self,
        frame: Frame,
        definition: PartitionDefinition | None,
        keys: Sequence[PartitionKey],
        writer: Writer,
        *,
        apart: bool,
    ) -> list[Staged]:
        appends = self.place.write_mode == "append"
        with _answering(self.place.uri):
            if appends:
                refuse_other_columns(frame, definition, self._current(definition, keys), self.place)
            files = self._files(self.staging(writer, partitioned=definition is not None))
        target = Target(files, definition, keys, keeps_schema=appends)
        return stage_one(frame, target) if apart else stage(frame, target)

    def read(
        self,
        session: Session,
        definition: PartitionDefinition | None,
        keys: Sequence[PartitionKey],
        *,
        version: int | None = None,
    ) -> Frame:
        paths = [key_folder(definition, key) for key in keys]
        with _answering(self.place.uri), ThreadPoolExecutor(_LISTED_AT_ONCE) as pool:
            logs = dict(zip(paths, pool.map(self._log, paths), strict=True))
            if version is None:
                counting = {path: _counting(log) for path, log in logs.items()}
            else:
                counting = {path: [_version(log, version, path)] for path, log in logs.items()}
            own = [_folder(one, path) for path, entries in counting.items() for one in entries]
            are_outside = pool.map(self._began_outside, counting, counting.values())
            others = [path for path, is_so in zip(counting, are_outside, strict=True) if is_so]
            frames = []
            if own:
                frame = read(session, self._files(_DATA), own, self.place.columns)
                frames.append(frame.drop(_COLUMN))
            if others:
                home = self._files(UNPARTITIONED)
                frames.append(read(session, home, others, self.place.columns))
        return by_name(frames)

    def read_staged(
        self,
        session: Session,
        definition: PartitionDefinition | None,
        staged: Sequence[Staged],
        writer: Writer,
    ) -> Frame:
        folders = [_folder(_Entry(0, _attempt(writer), ""), one.path) for one in staged]
        return read(session, self._files(_DATA), folders, ()).drop(_COLUMN)

    def publish(
        self, staging: str, partitions: Sequence[Mapping[str, Any]], writer: Writer
    ) -> Mapping[str, Mapping[str, Any]]:
        with _answering(self.place.uri):
            return {
                path: self._publish(path, writer)
                for path in (str(partition["path"]) for partition in partitions)
            }

    def published(self, paths: Sequence[str], writer: Writer) -> list[str]:
        attempt = _attempt(writer)
        with _answering(self.place.uri):
            return [p for p in paths if any(one.attempt == attempt for one in self._log(p))]

    def discard(self, writer: Writer) -> None:
        with _answering(self.place.uri):
            files = self._files(self.staging(writer, partitioned=True))
            there = list(files.tree())
            kept = set(self.published(there, writer))
            for path in there:
                if path not in kept:
                    files.below(path).remove()

    def _publish(self, path: str, writer: Writer) -> Mapping[str, Any]:
        attempt, log = _attempt(writer), self._log(path)
        own = next((one for one in log if one.attempt == attempt), None)
        if own is None:
            if not self._files(_DATA).below(_folder(_Entry(0, attempt, ""), path)).data():
                raise StagingLostError(f"{path} was not published, and what was staged is gone")
            mode: str = self.place.write_mode
            earlier = {f"{writer.run_id}-{one}" for one in writer.earlier}
            if mode == "append" and any(one.attempt in earlier for one in _counting(log)):
                mode = "same"  # its rows are in already
            own = _Entry(1 + max((one.number for one in log), default=0), attempt, mode)
            self._files(f"{_LOG}/{path}").put(own.name, b"{}")
        if own.mode == "replace":
            self._remove(path, [one for one in log if one < own and one.mode != "version"])
        return {"version": own.number} if own.mode == "version" else {}

    def _remove(self, path: str, entries: Sequence[_Entry]) -> None:
        """Old data goes when nobody counts it any more."""
        for entry in entries:
            self._files(_DATA).below(_folder(entry, path)).remove()
            self._files(f"{_LOG}/{path}").delete(entry.name)

    def _log(self, path: str) -> list[_Entry]:
        names = self._files(f"{_LOG}/{path}").names()
        found = [match for name in names if (match := _ENTRY.fullmatch(name))]
        return sorted(_Entry(int(m[1]), m[3], m[2]) for m in found)

    def _current(
        self, definition: PartitionDefinition | None, keys: Sequence[PartitionKey]
    ) -> Iterator[tuple[str, Files]]:
        for path in (key_folder(definition, key) for key in keys):
            for entry in _counting(self._log(path))[-1:]:
                yield path, self._files(_DATA).below(_folder(entry, path))

    def _began_outside(self, path: str, entries: Sequence[_Entry]) -> bool:
        """Whether something else has written a partition's first rows, in a folder like Spark's.

        There is no log until a run has added some.
        """
        if any(one.mode != "append" for one in entries):
            return False
        return not entries or bool(self._files(UNPARTITIONED).below(path).data())

    def _files(self, folder: str) -> Files:
        parts = urlsplit(self.place.uri)
        root = unquote(parts.path).strip("/")
        path = "/".join(part for part in (root, folder) if part not in ("", UNPARTITIONED))
        form = FORMATS[checked_format(self.place.format, self.place.uri, self.formats)]
        url = f"{self.connector}://{parts.netloc}/{path}"
        options = self.place.connection.get("hadoop") or {}
        return Files(self._system(parts.netloc), path, url, form, options, options)

    def _system(self, bucket: str) -> "FileSystem":
        from pyarrow.fs import FileSystem, SubTreeFileSystem

        uri = self.place.connection.get("arrow") or f"{self.arrow}://{bucket}"
        system, base = FileSystem.from_uri(uri)
        return SubTreeFileSystem(base, system)


class S3Storage(ObjectStorage, kind="s3"):
    """Amazon S3, and what speaks like it."""

    connector = "s3a"
    arrow = "s3"


class GcsStorage(ObjectStorage, kind="gcs"):
    """Google Cloud Storage."""

    connector = "gs"
    arrow = "gs"


def _attempt(writer: Writer) -> str:
    return f"{writer.run_id}-{writer.attempt}"


def _folder(entry: _Entry, path: str) -> str:
    attempt = f"{_COLUMN}={entry.attempt}"
    return attempt if path == UNPARTITIONED else f"{attempt}/{path}"


def _counting(log: Sequence[_Entry]) -> list[_Entry]:
    """The publications whose rows a partition has: the latest that begins it anew, and later."""
    starts = [place for place, one in enumerate(log) if one.mode in ("replace", "version")]
    return [one for one in log[starts[-1] if starts else 0 :] if one.mode != "same"]


def _version(log: Sequence[_Entry], number: int, path: str) -> _Entry:
    there = [one for one in log if one.mode == "version"]
    found = next((one for one in there if one.number == number), None)
    if found is None:
        shown = ", ".join(str(one.number) for one in there) or "none"
        raise MissingVersionError(f"there is no version {number} of {path}; there are: {shown}")
    return found


@contextmanager
def _answering(uri: str) -> Iterator[None]:
    """pyarrow tells of a store that does not answer by an OSError without a number."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise TryAgainError(f"{uri}: {error}") from error
        raise

"""``s3:`` and ``gcs:`` URIs: immutable files, and a log for each partition that says which count.

Object stores cannot exchange folders. To publish is to create the next entry of the partition's
log, which the store lets one worker do. Whoever takes a publication over creates one first that
says so, by which the worker before is told that its right is gone.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from urllib.parse import unquote, urlsplit

from slicewise.definitions import PartitionDefinition
from slicewise.folders import key_folder
from slicewise.io.appending import refuse_other_columns
from slicewise.io.base import Frame, Measured, Session, Staged, Storage, Writer
from slicewise.io.files import Files, measured
from slicewise.io.formats import FORMATS, checked_format
from slicewise.io.object_log import LogState, ObjectLog
from slicewise.io.object_store import Store, answering, store_at
from slicewise.io.reading import by_name, read
from slicewise.io.staging import Target, stage, stage_one
from slicewise.keys import PartitionKey
from slicewise.storage.errors import StagingLostError
from slicewise.storage.layout import UNPARTITIONED
from slicewise.storage.modes import MissingVersionError
from slicewise.storage.removing import WRITTEN_SINCE

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_COLUMN = "_slicewise_attempt"
_DATA, _LOG, _TRIAL = "_slicewise/data", "_slicewise/log", "_slicewise/trial"
_AT_ONCE = 16
# As pyarrow names them; a connection may say that a folder of this host stands for one.
_STORES = frozenset({"s3", "gs", "gcs"})

_Result = TypeVar("_Result")


class ObjectStorage(Storage):
    """Files are written where they stay; readers follow the log."""

    formats = tuple(FORMATS)
    write_modes = ("replace", "append", "version")
    measures_cheaply = True
    keeps_cuts_apart = True
    connector: ClassVar[str]
    """The scheme of Hadoop's connector."""
    arrow: ClassVar[str]
    """The scheme by which pyarrow knows the store."""

    @property
    def is_remote(self) -> bool:
        return urlsplit(self._arrow_uri).scheme in _STORES

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
        with answering(self.place.uri):
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
        with answering(self.place.uri):
            states = dict(zip(paths, _at_once(self._state, paths), strict=True))
            if version is None:
                own = [_folder(one, path) for path in paths for one in states[path].data]
                others = [path for path in paths if states[path].outside]
                others = [one for one in others if self._began_outside(one, states[one])]
            else:
                own = [_folder(_version(states[path], version, path), path) for path in paths]
                others = []
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
        folders = [_folder(_attempt(writer), one.path) for one in staged]
        return read(session, self._files(_DATA), folders, ()).drop(_COLUMN)

    def refuse_place(self) -> None:
        with answering(self.place.uri):
            self._refuse_unfit()

    def check(self, staging: str, partitions: Sequence[Mapping[str, Any]], writer: Writer) -> None:
        with answering(self.place.uri):
            paths = [str(partition["path"]) for partition in partitions]
            states = self._take_over(paths, writer)
            lost = [path for path in paths if not states[path].has(_attempt(writer))]
            _at_once(lambda path: self._refuse_lost(path, writer), lost)

    def publish(
        self, staging: str, partitions: Sequence[Mapping[str, Any]], writer: Writer
    ) -> Mapping[str, Mapping[str, Any]]:
        with answering(self.place.uri):
            self._refuse_unfit()
            paths = [str(partition["path"]) for partition in partitions]
            if writer.fence > 1:
                self._take_over(paths, writer)
            facts = _at_once(lambda path: self._publish(path, writer), paths)
            return dict(zip(paths, facts, strict=True))

    def published(self, paths: Sequence[str], writer: Writer) -> list[str]:
        with answering(self.place.uri):
            states = zip(paths, _at_once(self._state, paths), strict=True)
            return [path for path, state in states if state.has(_attempt(writer))]

    def discard(self, writer: Writer) -> None:
        with answering(self.place.uri):
            files = self._files(self.staging(writer, partitioned=True))
            there = list(files.tree())
            kept = set(self.published(there, writer))
            for path in there:
                if path not in kept:
                    files.below(path).remove()

    def measure(self, paths: Sequence[str]) -> Mapping[str, Measured | None]:
        with answering(self.place.uri):
            return dict(zip(paths, _at_once(self._measured, paths), strict=True))

    def remove(self, writers: Mapping[str, Sequence[Writer]]) -> Mapping[str, str]:
        with answering(self.place.uri):
            reasons = {path: self._remove_partition(path, own) for path, own in writers.items()}
        return {path: reason for path, reason in reasons.items() if reason}

    def _remove_partition(self, path: str, writers: Sequence[Writer]) -> str:
        """Remove the data of a partition; return why it is kept, if it is.

        Its log stays, with an entry that says so: numbers that were used are never used again.
        """
        if self._files(UNPARTITIONED).below(path).data():
            return "something else has written data beside that of runs"
        recorded = {_attempt(writer) for writer in writers}

        def step(state: LogState) -> LogState | None:
            is_ours = bool(state.data) and state.data[-1] in recorded
            return state.removed() if is_ours else None

        state = self._log(path).change(step, lambda state: step(state) is None)
        self._remove_old(path, state)
        return WRITTEN_SINCE if state.data else ""

    def _measured(self, path: str) -> Measured | None:
        state, home = self._state(path), self._files(_DATA)
        folders = [home.below(_folder(attempt, path)) for attempt in state.data]
        if state.outside:
            folders.append(self._files(UNPARTITIONED).below(path))
        return measured(folders)

    def _publish(self, path: str, writer: Writer) -> Mapping[str, Any]:
        attempt, mode = _attempt(writer), self.place.write_mode
        earlier = {f"{writer.run_id}-{one}" for one in writer.earlier}

        def step(state: LogState) -> LogState | None:
            if state.has(attempt):
                return None
            _refuse_fenced(state, path, writer)
            self._refuse_lost(path, writer)
            # The next entry does not name these any more.
            self._remove_old(path, state)
            return state.published(attempt, mode, earlier)

        state = self._log(path).change(step, lambda one: one.has(attempt) or attempt in one.old)
        self._remove_old(path, state)
        numbers = [number for number, one in state.versions.items() if one == attempt]
        return {"version": numbers[0]} if numbers else {}

    def _take_over(self, paths: Sequence[str], writer: Writer) -> Mapping[str, LogState]:
        """Put a fence into each log, unless the attempt's data is in place; return what logs say.

        All of them, whatever is wrong with one: else a worker before could go on with the others
        after this one has given up. Raises StagingLostError where there is a higher one.
        """
        refusals: list[StagingLostError] = []

        def take(path: str) -> LogState | None:
            def step(state: LogState) -> LogState | None:
                return _fenced(state, path, writer)

            try:
                return self._log(path).change(step, lambda state: step(state) is None)
            except StagingLostError as error:
                refusals.append(error)
                return None

        states = dict(zip(paths, _at_once(take, paths), strict=True))
        if refusals:
            raise refusals[0]
        return {path: state for path, state in states.items() if state is not None}

    def _refuse_lost(self, path: str, writer: Writer) -> None:
        if not self._files(_DATA).below(_folder(_attempt(writer), path)).data():
            raise StagingLostError(f"{path} was not published, and what was staged is gone")

    def _remove_old(self, path: str, state: LogState) -> None:
        """Remove the files that the latest entry has put out of use."""
        for attempt in state.old:
            self._files(_DATA).below(_folder(attempt, path)).remove()

    def _state(self, path: str) -> LogState:
        return self._log(path).state()

    def _log(self, path: str) -> ObjectLog:
        # The key of an object is no path: a `.` in it would be another key, or none that clients
        # send as it is.
        folders = [self._root, _LOG, "" if path == UNPARTITIONED else path]
        return ObjectLog(self._store(), "/".join(filter(None, folders)), path)

    def _current(
        self, definition: PartitionDefinition | None, keys: Sequence[PartitionKey]
    ) -> Iterator[tuple[str, Files]]:
        for path in (key_folder(definition, key) for key in keys):
            for attempt in self._state(path).data[-1:]:
                yield path, self._files(_DATA).below(_folder(attempt, path))

    def _began_outside(self, path: str, state: LogState) -> bool:
        """Whether something else has written a partition's first rows, in a folder like Spark's.

        There is no log until a run has added some.
        """
        return not state.data or bool(self._files(UNPARTITIONED).below(path).data())

    @property
    def _root(self) -> str:
        return unquote(urlsplit(self.place.uri).path).strip("/")

    @property
    def _bucket(self) -> str:
        return urlsplit(self.place.uri).netloc

    def _files(self, folder: str) -> Files:
        parts = (self._root, folder)
        path = "/".join(part for part in parts if part not in ("", UNPARTITIONED))
        form = FORMATS[checked_format(self.place.format, self.place.uri, self.formats)]
        url = f"{self.connector}://{self._bucket}/{path}"
        options = self.place.connection.get("hadoop") or {}
        return Files(self._system(), path, url, form, options, options)

    def _system(self) -> "FileSystem":
        from pyarrow.fs import FileSystem, SubTreeFileSystem

        system, base = FileSystem.from_uri(self._arrow_uri)
        return SubTreeFileSystem(base, system)

    @property
    def _arrow_uri(self) -> str:
        return str(self.place.connection.get("arrow") or f"{self.arrow}://{self._bucket}")

    def _store(self) -> Store:
        return store_at(self._arrow_uri, self.place.connection.get("obstore") or {})

    def _refuse_unfit(self) -> None:
        folder = "/".join(filter(None, (self._root, _TRIAL)))
        self._store().refuse_unfit(folder, self.place.uri, name=self._arrow_uri)


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


def _folder(attempt: str, path: str) -> str:
    folder = f"{_COLUMN}={attempt}"
    return folder if path == UNPARTITIONED else f"{folder}/{path}"


def _fenced(state: LogState, path: str, writer: Writer) -> LogState | None:
    """Return the state with the writer's fencing number; None where it has that, or needs none."""
    attempt = _attempt(writer)
    if state.has(attempt):
        return None
    _refuse_fenced(state, path, writer)
    is_known = state.fences.get(attempt, 1) == writer.fence
    return None if is_known else state.fenced(attempt, writer.fence)


def _refuse_fenced(state: LogState, path: str, writer: Writer) -> None:
    attempt = _attempt(writer)
    if state.fences.get(attempt, 1) > writer.fence:
        raise StagingLostError(f"another worker has taken over what was staged for {path}")
    if attempt in state.old:
        raise StagingLostError(f"{path} was published, and written anew since")


def _version(state: LogState, number: int, path: str) -> str:
    if number not in state.versions:
        shown = ", ".join(map(str, sorted(state.versions))) or "none"
        raise MissingVersionError(f"there is no version {number} of {path}; there are: {shown}")
    return state.versions[number]


def _at_once(act: Callable[[str], _Result], paths: Iterable[str]) -> list[_Result]:
    """Return the results of a call for each path, several of them made at a time."""
    paths = list(paths)
    if len(paths) < 2:
        return [act(path) for path in paths]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(act, paths))

"""``s3:`` and ``gcs:`` URIs: immutable files, and a log for each partition
that names the valid ones.

Object stores cannot exchange folders. To publish is to create the next entry of the partition's
log, which the store lets one worker do. A worker that takes a publication over first creates an
entry with its fencing number, so that the worker before learns that its right is gone.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from slicewise.io.appending import refuse_other_columns
from slicewise.io.base import Frame, Measured, Session, Staged, Storage, Writer
from slicewise.io.concurrent_calls import map_concurrently
from slicewise.io.files import Files, measured
from slicewise.io.formats import FORMATS
from slicewise.io.object_attempts import (
    ATTEMPT_COLUMN,
    attempt_name,
    attempt_of_version,
    data_folder,
    fenced,
    refuse_fenced,
)
from slicewise.io.object_location import ObjectLocation
from slicewise.io.object_log import LogState, ObjectLog
from slicewise.io.object_store import translated_errors
from slicewise.io.reading import by_name, read
from slicewise.io.staging import Target, stage, stage_one
from slicewise.keys.partition_key import PartitionKey
from slicewise.partitions.definition import PartitionDefinition
from slicewise.partitions.partition_paths import key_folder
from slicewise.storage.layout import UNPARTITIONED
from slicewise.storage.removing import WRITTEN_SINCE
from slicewise.storage.storage_errors import StagingLostError

_DATA, _LOG = "_slicewise/data", "_slicewise/log"


class ObjectStorage(Storage):
    """A storage that writes files at their final location; readers follow the log."""

    formats = tuple(FORMATS)
    write_modes = ("replace", "append", "version")
    measures_cheaply = True
    keeps_definitions_apart = True
    connector: ClassVar[str]
    """The scheme of Hadoop's connector."""
    arrow: ClassVar[str]
    """The scheme by which pyarrow knows the store."""

    @property
    def is_remote(self) -> bool:
        return self._object_location.is_remote

    def staging(self, writer: Writer, *, partitioned: bool) -> str:
        return f"{_DATA}/{ATTEMPT_COLUMN}={attempt_name(writer)}"

    def stage(
        self,
        frame: Frame,
        definition: PartitionDefinition | None,
        keys: Sequence[PartitionKey],
        writer: Writer,
        *,
        single_partition: bool,
    ) -> list[Staged]:
        appends = self.location.write_mode == "append"
        with translated_errors(self.location.uri):
            if appends:
                refuse_other_columns(
                    frame, definition, self._current(definition, keys), self.location
                )
            files = self._files(self.staging(writer, partitioned=definition is not None))
        target = Target(files, definition, keys, keeps_schema=appends)
        return stage_one(frame, target) if single_partition else stage(frame, target)

    def read(
        self,
        session: Session,
        definition: PartitionDefinition | None,
        keys: Sequence[PartitionKey],
        *,
        version: int | None = None,
    ) -> Frame:
        paths = [key_folder(definition, key) for key in keys]
        with translated_errors(self.location.uri):
            states = dict(zip(paths, map_concurrently(self._state, paths), strict=True))
            if version is None:
                run_folders = [
                    data_folder(attempt, path) for path in paths for attempt in states[path].data
                ]
                outside_paths = [path for path in paths if states[path].outside]
                outside_paths = [
                    path for path in outside_paths if self._began_outside(path, states[path])
                ]
            else:
                run_folders = [
                    data_folder(attempt_of_version(states[path], version, path), path)
                    for path in paths
                ]
                outside_paths = []
            frames = []
            if run_folders:
                frame = read(session, self._files(_DATA), run_folders, self.location.columns)
                frames.append(frame.drop(ATTEMPT_COLUMN))
            if outside_paths:
                home = self._files(UNPARTITIONED)
                frames.append(read(session, home, outside_paths, self.location.columns))
        return by_name(frames)

    def read_staged(
        self,
        session: Session,
        definition: PartitionDefinition | None,
        staged: Sequence[Staged],
        writer: Writer,
    ) -> Frame:
        folders = [data_folder(attempt_name(writer), partition.path) for partition in staged]
        return read(session, self._files(_DATA), folders, ()).drop(ATTEMPT_COLUMN)

    def refuse_unfit_location(self) -> None:
        with translated_errors(self.location.uri):
            self._object_location.refuse_unfit()

    def check(self, staging: str, partitions: Sequence[Mapping[str, Any]], writer: Writer) -> None:
        with translated_errors(self.location.uri):
            paths = [str(partition["path"]) for partition in partitions]
            states = self._take_over(paths, writer)
            lost = [path for path in paths if not states[path].has(attempt_name(writer))]
            map_concurrently(lambda path: self._refuse_lost(path, writer), lost)

    def publish(
        self, staging: str, partitions: Sequence[Mapping[str, Any]], writer: Writer
    ) -> Mapping[str, Mapping[str, Any]]:
        with translated_errors(self.location.uri):
            self._object_location.refuse_unfit()
            paths = [str(partition["path"]) for partition in partitions]
            if writer.fence > 1:
                self._take_over(paths, writer)
            facts = map_concurrently(lambda path: self._publish(path, writer), paths)
            return dict(zip(paths, facts, strict=True))

    def published(self, paths: Sequence[str], writer: Writer) -> list[str]:
        with translated_errors(self.location.uri):
            states = zip(paths, map_concurrently(self._state, paths), strict=True)
            return [path for path, state in states if state.has(attempt_name(writer))]

    def discard(self, writer: Writer) -> None:
        with translated_errors(self.location.uri):
            files = self._files(self.staging(writer, partitioned=True))
            staged_paths = list(files.tree())
            published_paths = set(self.published(staged_paths, writer))
            for path in staged_paths:
                if path not in published_paths:
                    files.below(path).remove()

    def measure(self, paths: Sequence[str]) -> Mapping[str, Measured | None]:
        with translated_errors(self.location.uri):
            return dict(zip(paths, map_concurrently(self._measured, paths), strict=True))

    def remove(self, writers: Mapping[str, Sequence[Writer]]) -> Mapping[str, str]:
        with translated_errors(self.location.uri):
            reasons = {
                path: self._remove_partition(path, attempts) for path, attempts in writers.items()
            }
        return {path: reason for path, reason in reasons.items() if reason}

    def _remove_partition(self, path: str, writers: Sequence[Writer]) -> str:
        """Remove the data of a partition; return the reason why it is kept, or an empty text.

        The partition's log stays, with an entry for the removal: numbers are never used again.
        """
        if self._files(UNPARTITIONED).below(path).data():
            return "another program has written data beside the data of runs"
        recorded = {attempt_name(writer) for writer in writers}

        def step(state: LogState) -> LogState | None:
            is_ours = bool(state.data) and state.data[-1] in recorded
            return state.removed() if is_ours else None

        state = self._log(path).change(step, lambda state: step(state) is None)
        self._remove_old(path, state)
        return WRITTEN_SINCE if state.data else ""

    def _measured(self, path: str) -> Measured | None:
        state, home = self._state(path), self._files(_DATA)
        folders = [home.below(data_folder(attempt, path)) for attempt in state.data]
        if state.outside:
            folders.append(self._files(UNPARTITIONED).below(path))
        return measured(folders)

    def _publish(self, path: str, writer: Writer) -> Mapping[str, Any]:
        attempt, mode = attempt_name(writer), self.location.write_mode
        earlier = {f"{writer.run_id}-{name}" for name in writer.earlier}

        def step(state: LogState) -> LogState | None:
            if state.has(attempt):
                return None
            refuse_fenced(state, path, writer)
            self._refuse_lost(path, writer)
            # The next entry does not list these files any more.
            self._remove_old(path, state)
            return state.published(attempt, mode, earlier)

        state = self._log(path).change(
            step, lambda state: state.has(attempt) or attempt in state.old
        )
        self._remove_old(path, state)
        numbers = [number for number, publisher in state.versions.items() if publisher == attempt]
        return {"version": numbers[0]} if numbers else {}

    def _take_over(self, paths: Sequence[str], writer: Writer) -> Mapping[str, LogState]:
        """Put a fence into each log, unless the attempt's data is in
        place; return the logs' states.

        All logs get a fence, even if one fails: otherwise an earlier worker could go on with the
        other partitions after this one has given up. Raises StagingLostError if there is a higher
        fence.
        """
        refusals: list[StagingLostError] = []

        def take(path: str) -> LogState | None:
            def step(state: LogState) -> LogState | None:
                return fenced(state, path, writer)

            try:
                return self._log(path).change(step, lambda state: step(state) is None)
            except StagingLostError as error:
                refusals.append(error)
                return None

        states = dict(zip(paths, map_concurrently(take, paths), strict=True))
        if refusals:
            raise refusals[0]
        return {path: state for path, state in states.items() if state is not None}

    def _refuse_lost(self, path: str, writer: Writer) -> None:
        if not self._files(_DATA).below(data_folder(attempt_name(writer), path)).data():
            raise StagingLostError(f"{path} was not published, and the staged data is missing")

    def _remove_old(self, path: str, state: LogState) -> None:
        """Remove the files that the latest entry has put out of use."""
        for attempt in state.old:
            self._files(_DATA).below(data_folder(attempt, path)).remove()

    def _state(self, path: str) -> LogState:
        return self._log(path).state()

    def _log(self, path: str) -> ObjectLog:
        # The key of an object is no path: with a `.` it would be another key, or a key that clients
        # do not send unchanged.
        folders = [self._object_location.root, _LOG, "" if path == UNPARTITIONED else path]
        return ObjectLog(self._object_location.store(), "/".join(filter(None, folders)), path)

    def _current(
        self, definition: PartitionDefinition | None, keys: Sequence[PartitionKey]
    ) -> Iterator[tuple[str, Files]]:
        for path in (key_folder(definition, key) for key in keys):
            for attempt in self._state(path).data[-1:]:
                yield path, self._files(_DATA).below(data_folder(attempt, path))

    def _began_outside(self, path: str, state: LogState) -> bool:
        """Return whether another program wrote a partition's first rows, in a folder like Spark's.

        There is no log until a run has added rows.
        """
        return not state.data or bool(self._files(UNPARTITIONED).below(path).data())

    def _files(self, folder: str) -> Files:
        return self._object_location.files(folder, self.formats)

    @property
    def _object_location(self) -> ObjectLocation:
        return ObjectLocation(self.location, self.connector, self.arrow)


class S3Storage(ObjectStorage, kind="s3"):
    """Amazon S3, and stores with the same protocol."""

    connector = "s3a"
    arrow = "s3"


class GcsStorage(ObjectStorage, kind="gcs"):
    """Google Cloud Storage."""

    connector = "gs"
    arrow = "gs"

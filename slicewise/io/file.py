"""``file:`` URIs: folders that workers and Spark share."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from slicewise import storage
from slicewise.io.appending import refuse_other_columns
from slicewise.io.base import Frame, Measured, Session, Staged, Storage, Writer
from slicewise.io.files import Files, measured
from slicewise.io.formats import FORMATS, checked_format
from slicewise.io.reading import read
from slicewise.io.staging import Target, stage
from slicewise.keys.partition_key import PartitionKey
from slicewise.partitions.definition import PartitionDefinition
from slicewise.partitions.partition_paths import key_folder
from slicewise.storage.layout import marker_name, staging_path
from slicewise.storage.removing import remove_partitions
from slicewise.uris.canonical import uri_path

# Hadoop's local file system starts a `chmod` process for every file and for its checksum file;
# without checksum files many small folders are written in two thirds of the time.
_WRITING = {
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}


_LISTED_AT_ONCE = 16


class FileStorage(Storage, kind="file"):
    """A folder for each partition; a new folder takes the old one's place in one step."""

    formats = tuple(FORMATS)
    write_modes = ("replace", "append", "version")
    must_write = True
    measures_cheaply = True
    keeps_definitions_apart = True

    @property
    def root(self) -> Path:
        """The asset's folder. Raises ValueError for a folder of another host."""
        uri = self.location.uri
        return Path(uri) if uri.startswith("/") else uri_path(uri)

    def refuse_unfit_location(self) -> None:
        storage.refuse_unfit(self.root)

    def staging(self, writer: Writer, *, partitioned: bool) -> str:
        names = (writer.run_id, writer.attempt, writer.fence)
        return str(staging_path(self.root, *names, partitioned=partitioned))

    def read(
        self,
        session: Session,
        definition: PartitionDefinition | None,
        keys: Sequence[PartitionKey],
        *,
        version: int | None = None,
    ) -> Frame:
        partition_folders = [key_folder(definition, key) for key in keys]
        root, folders_below = storage.folders_to_read(self.root, partition_folders, version=version)
        return read(session, self._files(root), folders_below, self.location.columns)

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
        if appends:
            paths = (key_folder(definition, key) for key in keys)
            latest_files = ((path, self._files(self.root / path)) for path in paths)
            refuse_other_columns(frame, definition, latest_files, self.location)
        folder = Path(self.staging(writer, partitioned=definition is not None))
        target = Target(self._files(folder), definition, keys, keeps_schema=appends)
        staged = (
            self._stage_single(frame, target, folder) if single_partition else stage(frame, target)
        )
        for partition in staged:
            (folder / partition.path / marker_name(writer.run_id, writer.attempt)).touch()
        return staged

    def _stage_single(self, frame: Frame, target: Target, folder: Path) -> list[Staged]:
        """Stage one partition by way of a folder of its own, since Spark writes only into a folder
        that does not exist yet.
        """
        scratch = folder / f"_single-{uuid4().hex}"
        files = self._files(scratch)
        try:
            staged = stage(frame, replace(target, files=files))
            target_folder = folder / staged[0].path
            target_folder.parent.mkdir(parents=True, exist_ok=True)
            os.rename(scratch / staged[0].path, target_folder)
        finally:
            files.remove()
        return staged

    def read_staged(
        self,
        session: Session,
        definition: PartitionDefinition | None,
        staged: Sequence[Staged],
        writer: Writer,
    ) -> Frame:
        folder = Path(self.staging(writer, partitioned=definition is not None))
        return read(session, self._files(folder), [partition.path for partition in staged], ())

    def check(self, staging: str, partitions: Sequence[Mapping[str, Any]], writer: Writer) -> None:
        storage.check(
            str(self.root),
            staging,
            partitions,
            run_id=writer.run_id,
            attempt=writer.attempt,
            fence=writer.fence,
        )

    def publish(
        self, staging: str, partitions: Sequence[Mapping[str, Any]], writer: Writer
    ) -> Mapping[str, Mapping[str, Any]]:
        return storage.publish(
            str(self.root),
            staging,
            partitions,
            run_id=writer.run_id,
            attempt=writer.attempt,
            fence=writer.fence,
            mode=self.location.write_mode,
            earlier=writer.earlier,
        )

    def published(self, paths: Sequence[str], writer: Writer) -> list[str]:
        return storage.published(
            str(self.root), paths, run_id=writer.run_id, attempt=writer.attempt
        )

    def discard(self, writer: Writer) -> None:
        storage.discard(str(self.root), run_id=writer.run_id, attempt=writer.attempt)

    def has_remains(self, writer: Writer) -> bool:
        return storage.has_remains(
            str(self.root), run_id=writer.run_id, attempt=writer.attempt, fence=writer.fence
        )

    def is_reachable(self) -> bool:
        return self.root.exists()

    def measure(self, paths: Sequence[str]) -> Mapping[str, Measured | None]:
        home = self._files(self.root)
        with ThreadPoolExecutor(_LISTED_AT_ONCE) as pool:
            sizes = pool.map(lambda path: measured([home.below(path)]), paths)
            return dict(zip(paths, sizes, strict=True))

    def remove(self, writers: Mapping[str, Sequence[Writer]]) -> Mapping[str, str]:
        markers = {
            path: [marker_name(writer.run_id, writer.attempt) for writer in attempts]
            for path, attempts in writers.items()
        }
        return remove_partitions(str(self.root), markers)

    def _files(self, folder: Path) -> Files:
        from pyarrow.fs import LocalFileSystem

        form = FORMATS[checked_format(self.location.format, self.location.uri, self.formats)]
        return Files(LocalFileSystem(), str(folder), f"file://{folder}", form, _WRITING)

"""Folders of data files that Python and Spark share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from slicewise.io.base import Measured
from slicewise.io.formats import SCHEMA_FILE, Format, count_rows

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

Frame = Any  # of pyspark, which is not imported for the sake of a type
Schema = Any

_NO_SUCCESS_FILES = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}


@dataclass(frozen=True)
class Files:
    """A folder of data files: ``path`` in ``system``, and ``url``, as Spark names the same
    folder.
    """

    system: "FileSystem"
    path: str
    url: str
    form: Format
    writing: Mapping[str, str] = field(default_factory=dict)
    """Write options that this file system requires."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Read options that this file system requires."""

    def below(self, folder: str) -> "Files":
        """Return a folder inside this folder; ``.`` is this folder."""
        if folder == ".":
            return self
        return replace(self, path=f"{self.path}/{folder}", url=f"{self.url}/{folder}")

    def tree(self) -> dict[str, list["FileInfo"]]:
        """Return the data files of this folder (``.``) and of each folder below, by folder, in the
        order of names.
        """
        from pyarrow.fs import FileSelector, FileType

        selector = FileSelector(self.path, allow_not_found=True, recursive=True)
        infos_by_folder: dict[str, list[FileInfo]] = {}
        for info in self.system.get_file_info(selector):
            if info.type == FileType.File and is_data(info.base_name):
                folder = info.path.removeprefix(self.path).rpartition("/")[0].strip("/")
                infos_by_folder.setdefault(folder or ".", []).append(info)
        return {
            folder: sorted(infos_by_folder[folder], key=_path) for folder in sorted(infos_by_folder)
        }

    def data(self) -> list["FileInfo"]:
        """Return the data files right in this folder, in the order of names; of a file,
        the file.
        """
        return [info for info in self.listed() if is_data(info.base_name)]

    def listed(self) -> list["FileInfo"]:
        """Return the files of this folder as `data` does, hidden files included."""
        from pyarrow.fs import FileSelector, FileType

        own_info = self.system.get_file_info(self.path)
        if own_info.type == FileType.File:
            return [own_info]
        infos = self.system.get_file_info(FileSelector(self.path, allow_not_found=True))
        return sorted((info for info in infos if info.type == FileType.File), key=_path)

    def rows(self, files: Sequence["FileInfo"]) -> int:
        """Return how many rows these files hold."""
        return sum(count_rows(self.form, self.system, info.path) for info in files)

    def get(self, name: str) -> bytes | None:
        """Return the content of a file of this folder; None if there is none."""
        try:
            with self.system.open_input_stream(f"{self.path}/{name}") as source:
                content: bytes = source.read()
                return content
        except (FileNotFoundError, NotADirectoryError):
            return None

    def put(self, name: str, content: bytes) -> None:
        """Write a file of this folder; create the folder if need be."""
        self.system.create_dir(self.path)
        with self.system.open_output_stream(f"{self.path}/{name}") as target:
            target.write(content)

    def names(self) -> list[str]:
        """Return the names of all files of this folder."""
        from pyarrow.fs import FileSelector

        infos = self.system.get_file_info(FileSelector(self.path, allow_not_found=True))
        return [info.base_name for info in infos]

    def delete(self, name: str) -> None:
        """Remove a file of this folder, or do nothing if there is none."""
        try:
            self.system.delete_file(f"{self.path}/{name}")
        except FileNotFoundError:
            return

    def remove(self) -> None:
        """Remove the folder with all content, or do nothing if there is none."""
        try:
            self.system.delete_dir(self.path)
        except FileNotFoundError:
            return

    def write(self, frame: Frame, *, by: Sequence[str] = ()) -> None:
        """Write a frame by Spark into this folder, which must not exist yet."""
        options = {**_NO_SUCCESS_FILES, **self.writing, **self.form.writing}
        writer = frame.write.options(**options).format(self.form.name)
        (writer.partitionBy(*by) if by else writer).save(self.url)

    def keep_schema(self, schema: Schema) -> None:
        """Store the columns of the data in a file beside the data."""
        self.put(SCHEMA_FILE, schema.json().encode())

    def kept_schema(self) -> str | None:
        """Return the stored columns of this folder's data, as JSON; None if none are stored."""
        text = self.get(SCHEMA_FILE)
        return None if text is None else text.decode()


def measured(folders: Sequence[Files]) -> Measured | None:
    """Return the number and the size of the data files of some folders; None without data files."""
    files = [info for folder in folders for info in folder.data()]
    if not files:
        return None
    return Measured(bytes=sum(info.size for info in files), files=len(files))


def is_data(name: str) -> bool:
    """Return whether a file of this name holds data: other files are hidden, also from Spark."""
    return not name.startswith(("_", "."))


def _path(info: "FileInfo") -> str:
    path: str = info.path
    return path

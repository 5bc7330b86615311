"""A folder of data files, as Python reaches it and as Spark does."""

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
    """``path`` is the folder in ``system``, ``url`` is the same folder as Spark names it."""

    system: "FileSystem"
    path: str
    url: str
    form: Format
    writing: Mapping[str, str] = field(default_factory=dict)
    """Options of writing that this file system asks for."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of reading that it asks for."""

    def below(self, folder: str) -> "Files":
        """Return a folder inside this folder; ``.`` is this folder."""
        if folder == ".":
            return self
        return replace(self, path=f"{self.path}/{folder}", url=f"{self.url}/{folder}")

    def tree(self) -> dict[str, list["FileInfo"]]:
        """Return the data files of each folder below this one, which is ``.``, in the order
        of names.
        """
        from pyarrow.fs import FileSelector, FileType

        selector = FileSelector(self.path, allow_not_found=True, recursive=True)
        found: dict[str, list[FileInfo]] = {}
        for info in self.system.get_file_info(selector):
            if info.type == FileType.File and is_data(info.base_name):
                folder = info.path.removeprefix(self.path).rpartition("/")[0].strip("/")
                found.setdefault(folder or ".", []).append(info)
        return {folder: sorted(found[folder], key=_path) for folder in sorted(found)}

    def data(self) -> list["FileInfo"]:
        """Return the data files of this folder itself, in the order of names; a file by
        itself is one.
        """
        return [one for one in self.listed() if is_data(one.base_name)]

    def listed(self) -> list["FileInfo"]:
        """As `data`, and with the files that are hidden."""
        from pyarrow.fs import FileSelector, FileType

        itself = self.system.get_file_info(self.path)
        if itself.type == FileType.File:
            return [itself]
        infos = self.system.get_file_info(FileSelector(self.path, allow_not_found=True))
        return sorted((one for one in infos if one.type == FileType.File), key=_path)

    def rows(self, files: Sequence["FileInfo"]) -> int:
        """Return how many rows these files hold."""
        return sum(count_rows(self.form, self.system, one.path) for one in files)

    def get(self, name: str) -> bytes | None:
        """What a file of this folder holds; None if there is none."""
        try:
            with self.system.open_input_stream(f"{self.path}/{name}") as source:
                content: bytes = source.read()
                return content
        except (FileNotFoundError, NotADirectoryError):
            return None

    def put(self, name: str, content: bytes) -> None:
        """Write a file of this folder, which is made if need be."""
        self.system.create_dir(self.path)
        with self.system.open_output_stream(f"{self.path}/{name}") as target:
            target.write(content)

    def names(self) -> list[str]:
        """Return the names of the files of this folder, whatever they are."""
        from pyarrow.fs import FileSelector

        infos = self.system.get_file_info(FileSelector(self.path, allow_not_found=True))
        return [info.base_name for info in infos]

    def delete(self, name: str) -> None:
        """Remove a file of this folder, if it is there."""
        try:
            self.system.delete_file(f"{self.path}/{name}")
        except FileNotFoundError:
            return

    def remove(self) -> None:
        """Remove the folder and all that is in it, if it is there."""
        try:
            self.system.delete_dir(self.path)
        except FileNotFoundError:
            return

    def write(self, frame: Frame, *, by: Sequence[str] = ()) -> None:
        """Has Spark write a frame into this folder, which is not there yet."""
        options = {**_NO_SUCCESS_FILES, **self.writing, **self.form.writing}
        writer = frame.write.options(**options).format(self.form.name)
        (writer.partitionBy(*by) if by else writer).save(self.url)

    def keep_schema(self, schema: Schema) -> None:
        """Write down the columns of the data beside it."""
        self.put(SCHEMA_FILE, schema.json().encode())

    def kept_schema(self) -> str | None:
        """Return the columns of the data in this folder, as JSON; None where they lie not
        beside it.
        """
        text = self.get(SCHEMA_FILE)
        return None if text is None else text.decode()


def measured(folders: Sequence[Files]) -> Measured | None:
    """Return the size of the data files of some folders; None where none has any."""
    files = [info for folder in folders for info in folder.data()]
    return Measured(bytes=sum(info.size for info in files)) if files else None


def is_data(name: str) -> bool:
    """Return whether a file of this name holds data: others are hidden, also from Spark."""
    return not name.startswith(("_", "."))


def _path(info: "FileInfo") -> str:
    path: str = info.path
    return path

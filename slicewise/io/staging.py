"""Writes of a frame into an attempt's staging folder, each row into its own partition."""

from collections.abc import Sequence
from dataclasses import dataclass

from slicewise.io.base import Staged
from slicewise.io.files import Files
from slicewise.io.frames import (
    Frame,
    RowsError,
    lacks_dimension_columns,
    outside_sentence,
    text_columns,
)
from slicewise.keys.partition_key import PartitionKey
from slicewise.partitions.definition import PartitionDefinition
from slicewise.partitions.partition_paths import dimension_names, key_folder
from slicewise.storage.layout import NULL_FOLDER_VALUE, unescape

_LEAST_TASKS, _FOLDERS_PER_TASK = 32, 16


@dataclass(frozen=True)
class Target:
    """The target of a run's writes: the staging folder, and the partitions of the run."""

    files: Files
    definition: PartitionDefinition | None
    keys: Sequence[PartitionKey]
    keeps_schema: bool = False
    """Whether the columns are stored beside the data even if the files contain them."""


def stage(frame: Frame, target: Target) -> list[Staged]:
    """Write the rows of a frame; return the staged partitions.

    A frame for several partitions has a column per dimension; a frame for one partition may have
    it. Raises RowsError, with a sentence that names the columns, values or rows, for missing
    columns, nulls, and rows outside the run's partitions; nothing of the frame is kept in that
    case.
    """
    try:
        return _stage(frame, target)
    except BaseException:
        target.files.remove()
        raise


def stage_one(frame: Frame, target: Target) -> list[Staged]:
    """Write one partition as `stage` does, in a folder to which other partitions have been written.

    The rows are checked first: written files cannot be moved.
    """
    if not lacks_dimension_columns(frame, target.definition, target.keys):
        _refuse_outside_rows(frame, target)
        frame = frame.drop(*dimension_names(target.definition))
    folder = target.files.below(key_folder(target.definition, target.keys[0]))
    try:
        folder.write(frame)
        return _describe_staged(frame, target)
    except BaseException:
        folder.remove()
        raise


def _stage(frame: Frame, target: Target) -> list[Staged]:
    if lacks_dimension_columns(frame, target.definition, target.keys):
        target.files.below(key_folder(target.definition, target.keys[0])).write(frame)
    else:
        _write_by_key(frame, target)
        frame = frame.drop(*dimension_names(target.definition))
        _fill_empty(frame, target)
    return _describe_staged(frame, target)


def _write_by_key(frame: Frame, target: Target) -> None:
    texts = text_columns(frame, target.definition, target.keys)
    ready = frame.withColumns(dict(texts))
    if len(target.keys) > 1:
        # One file in each folder, and enough tasks to open the files at the same time: by default
        # Spark would put a small frame into one task.
        tasks = max(_LEAST_TASKS, len(target.keys) // _FOLDERS_PER_TASK)
        ready = ready.repartition(min(tasks, len(target.keys)), *texts)
    target.files.write(ready, by=list(texts))
    expected = {key_folder(target.definition, key) for key in target.keys}
    outside_files = {
        folder: infos for folder, infos in target.files.tree().items() if folder not in expected
    }
    if outside_files:
        rows = sum(target.files.rows(infos) for infos in outside_files.values())
        outside_values = [_values(folder) for folder in outside_files]
        raise RowsError(outside_sentence(rows, outside_values, frame, texts, len(target.keys)))


def _refuse_outside_rows(frame: Frame, target: Target) -> None:
    texts = text_columns(frame, target.definition, target.keys)
    selected = frame.select(*(text.alias(name) for name, text in texts.items()))
    own_values = _values(key_folder(target.definition, target.keys[0]))
    counts = [row.asDict() for row in selected.groupBy(*texts).count().collect()]
    outside_counts = [row for row in counts if any(row[name] != own_values[name] for name in texts)]
    if outside_counts:
        outside_values = [{name: row[name] for name in texts} for row in outside_counts]
        rows = sum(row["count"] for row in outside_counts)
        raise RowsError(outside_sentence(rows, outside_values, frame, texts, 1))


def _values(folder: str) -> dict[str, str | None]:
    """Return the values of the dimensions' columns, read from the path of a folder of Spark's."""
    pairs = (folder_name.partition("=") for folder_name in folder.split("/"))
    return {
        unescape(name): None if value == NULL_FOLDER_VALUE else unescape(value)
        for name, _, value in pairs
    }


def _fill_empty(frame: Frame, target: Target) -> None:
    """Write an empty file with the schema for each partition without rows."""
    files, infos_by_folder = target.files, target.files.tree()
    folders = [key_folder(target.definition, key) for key in target.keys]
    empty = [folder for folder in folders if folder not in infos_by_folder]
    if not empty:
        return
    scratch = files.below("_empty")
    scratch.write(frame.limit(0))
    written = scratch.data()
    name = written[0].base_name if written else _empty_name(files)
    content = (scratch.get(name) if written else None) or b""
    for folder in empty:
        files.below(folder).put(name, content)
    scratch.remove()


def _describe_staged(frame: Frame, target: Target) -> list[Staged]:
    """Return the staged partitions; store the columns beside files without columns."""
    files = target.files
    if len(target.keys) == 1:
        path = key_folder(target.definition, target.keys[0])
        infos_by_folder = {path: files.below(path).data()}
    else:
        infos_by_folder = files.tree()
    keeps_schema = target.keeps_schema or files.form.name != "parquet"
    staged = []
    for key in target.keys:
        path = key_folder(target.definition, key)
        folder, infos = files.below(path), infos_by_folder.get(path, [])
        if keeps_schema:
            folder.keep_schema(frame.schema)
        if not infos:  # this format writes no file for no rows, and Spark needs one
            folder.put(_empty_name(files), b"")
        size = sum(info.size for info in infos)
        staged.append(Staged(key.text, path, files.rows(infos), size))
    return staged


def _empty_name(files: Files) -> str:
    return f"part-empty{files.form.suffixes[0]}"

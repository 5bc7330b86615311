"""Writing a frame into the staging folder of an attempt, every row into its own partition."""

from collections.abc import Sequence
from dataclasses import dataclass

from slicewise.definitions import PartitionDefinition
from slicewise.folders import dimension_names, key_folder
from slicewise.frames import (
    Frame,
    RowsError,
    outside_sentence,
    says_nothing,
    text_columns,
)
from slicewise.io.base import Staged
from slicewise.io.files import Files
from slicewise.keys import PartitionKey
from slicewise.storage.layout import NULL_FOLDER_VALUE, unescape

_LEAST_TASKS, _FOLDERS_PER_TASK = 32, 16


@dataclass(frozen=True)
class Target:
    """Where a run writes: its staging folder, and the partitions that it makes."""

    files: Files
    definition: PartitionDefinition | None
    keys: Sequence[PartitionKey]
    keeps_schema: bool = False
    """Whether the columns are written down beside the data though its files say them."""


def stage(frame: Frame, target: Target) -> list[Staged]:
    """Write the rows of a frame and say what each partition holds.

    A frame for several partitions carries a column per dimension; one for a single partition may.
    Raises RowsError, with a sentence that names them, for missing columns, nulls, and rows outside
    the run's partitions; nothing of the frame is kept then.
    """
    try:
        return _stage(frame, target)
    except BaseException:
        target.files.remove()
        raise


def stage_one(frame: Frame, target: Target) -> list[Staged]:
    """As `stage` for one partition, where others have been written to the same folder.

    The rows are looked at first: what is written cannot be moved.
    """
    if not says_nothing(frame, target.definition, target.keys):
        _refuse_before(frame, target)
        frame = frame.drop(*dimension_names(target.definition))
    folder = target.files.below(key_folder(target.definition, target.keys[0]))
    try:
        folder.write(frame)
        return _finished(frame, target)
    except BaseException:
        folder.remove()
        raise


def _stage(frame: Frame, target: Target) -> list[Staged]:
    if says_nothing(frame, target.definition, target.keys):
        target.files.below(key_folder(target.definition, target.keys[0])).write(frame)
    else:
        _write_by_key(frame, target)
        frame = frame.drop(*dimension_names(target.definition))
        _fill_empty(frame, target)
    return _finished(frame, target)


def _write_by_key(frame: Frame, target: Target) -> None:
    texts = text_columns(frame, target.definition, target.keys)
    ready = frame.withColumns(dict(texts))
    if len(target.keys) > 1:
        # One file in each folder, and enough tasks to open them at the same time: left to itself
        # Spark would put a small frame into one task.
        tasks = max(_LEAST_TASKS, len(target.keys) // _FOLDERS_PER_TASK)
        ready = ready.repartition(min(tasks, len(target.keys)), *texts)
    target.files.write(ready, by=list(texts))
    expected = {key_folder(target.definition, key) for key in target.keys}
    wrong = {
        folder: infos for folder, infos in target.files.tree().items() if folder not in expected
    }
    if wrong:
        rows = sum(target.files.rows(infos) for infos in wrong.values())
        found = [_values(folder) for folder in wrong]
        raise RowsError(outside_sentence(rows, found, frame, texts, len(target.keys)))


def _refuse_before(frame: Frame, target: Target) -> None:
    texts = text_columns(frame, target.definition, target.keys)
    seen = frame.select(*(text.alias(name) for name, text in texts.items()))
    own = _values(key_folder(target.definition, target.keys[0]))
    counts = [row.asDict() for row in seen.groupBy(*texts).count().collect()]
    wrong = [row for row in counts if any(row[name] != own[name] for name in texts)]
    if wrong:
        found = [{name: row[name] for name in texts} for row in wrong]
        rows = sum(row["count"] for row in wrong)
        raise RowsError(outside_sentence(rows, found, frame, texts, 1))


def _values(folder: str) -> dict[str, str | None]:
    """The values of the dimensions' columns that a folder of Spark's stands for."""
    pairs = (part.partition("=") for part in folder.split("/"))
    return {
        unescape(name): None if value == NULL_FOLDER_VALUE else unescape(value)
        for name, _, value in pairs
    }


def _fill_empty(frame: Frame, target: Target) -> None:
    """An empty file with the schema for each partition that no row fell into."""
    files, there = target.files, target.files.tree()
    folders = [key_folder(target.definition, key) for key in target.keys]
    empty = [folder for folder in folders if folder not in there]
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


def _finished(frame: Frame, target: Target) -> list[Staged]:
    """What has been written, with its columns beside it where its files do not say them."""
    files = target.files
    if len(target.keys) == 1:
        path = key_folder(target.definition, target.keys[0])
        there = {path: files.below(path).data()}
    else:
        there = files.tree()
    keeps_schema = target.keeps_schema or files.form.name != "parquet"
    staged = []
    for key in target.keys:
        path = key_folder(target.definition, key)
        folder, infos = files.below(path), there.get(path, [])
        if keeps_schema:
            folder.keep_schema(frame.schema)
        if not infos:  # a format that writes no file for no rows; Spark looks for one
            folder.put(_empty_name(files), b"")
        size = sum(info.size for info in infos)
        staged.append(Staged(key.text, path, files.rows(infos), size))
    return staged


def _empty_name(files: Files) -> str:
    return f"part-empty{files.form.suffixes[0]}"

"""Writing a frame into the staging folder of an attempt, every row into its own partition."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from slicewise import spark
from slicewise.columns import window_text_column
from slicewise.definitions import PartitionDefinition
from slicewise.folders import column_text, dimension_names, key_folder, key_parts
from slicewise.intervals import Interval
from slicewise.keys import PartitionKey
from slicewise.storage import unescape
from slicewise.storage.layout import NULL_FOLDER_VALUE

# No key holds a control character, so that none is taken for it.
_OUTSIDE = "\x01outside"
_EXAMPLES = 3
_WRITE_OPTIONS = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",  # the marker says more
    # Hadoop's local file system starts a `chmod` process for every file and for its checksum
    # file; without the latter many small folders are written in two thirds of the time.
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}
_LEAST_TASKS, _FOLDERS_PER_TASK = 32, 16

Frame = Any  # a DataFrame of pyspark, which is not imported for the sake of a type
Column = Any


class RowsError(ValueError):
    """Rows that belong to no partition of the run, or a frame that cannot say where they belong."""


@dataclass(frozen=True)
class Target:
    """Where a run writes: its staging folder, and the partitions that it makes."""

    staging: Path
    definition: PartitionDefinition | None
    keys: Sequence[PartitionKey]
    marker: str


@dataclass(frozen=True)
class StagedPartition:
    """One partition as written: its key text, folder (relative), rows and bytes of data files."""

    key: str
    path: str
    rows: int
    bytes: int

    def to_json(self) -> dict[str, Any]:
        """As the runner reports it."""
        return {"key": self.key, "path": self.path, "rows": self.rows, "bytes": self.bytes}


def stage(frame: Frame, target: Target) -> list[StagedPartition]:
    """Writes the rows of a frame and says what each partition holds.

    A frame for several partitions carries a column per dimension; one for a single partition may.
    Raises RowsError, with a sentence that names them, for missing columns, nulls, and rows outside
    the run's partitions; nothing of the frame is kept then.
    """
    try:
        return _stage(frame, target)
    except BaseException:
        shutil.rmtree(target.staging, ignore_errors=True)
        raise


def _stage(frame: Frame, target: Target) -> list[StagedPartition]:
    names = dimension_names(target.definition)
    missing = [name for name in names if name not in frame.columns]
    if len(target.keys) == 1 and len(missing) == len(names):
        folder = target.staging / key_folder(target.definition, target.keys[0])
        _write(frame, folder)
    else:
        if missing and len(target.keys) > 1:
            raise RowsError(_missing_sentence(missing, len(target.keys)))
        texts = _text_columns(frame, target, names)
        _write_by_key(frame, texts, target)
        _refuse_rows_outside(frame, texts, target)
        _fill_empty(frame.drop(*names), target)
    return [_finish(key, target) for key in target.keys]


def stage_apart(frame: Frame, target: Target) -> list[StagedPartition]:
    """As `stage` for a target of one key, where others of the run are written before or after.

    Spark writes into a folder that is not there yet, so each such key gets one of its own first.
    """
    (key,) = target.keys
    path = key_folder(target.definition, key)
    apart, place = target.staging / f"_apart-{uuid4().hex}", target.staging / path
    try:
        staged = stage(frame, replace(target, staging=apart))
        place.parent.mkdir(parents=True, exist_ok=True)
        os.rename(apart / path, place)
    finally:
        shutil.rmtree(apart, ignore_errors=True)
    return staged


def _missing_sentence(missing: Sequence[str], count: int) -> str:
    columns = " and ".join(repr(name) for name in missing)
    return (
        f"the run makes {count} partitions, and the frame has no column {columns} that says to"
        " which one a row belongs; slicewise.partition_column makes one from a timestamp"
    )


def _write(frame: Frame, folder: Path) -> None:
    frame.write.options(**_WRITE_OPTIONS).parquet(f"file://{folder}")


def _write_by_key(frame: Frame, texts: Mapping[str, Column], target: Target) -> None:
    ready = frame.withColumns(dict(texts))
    if len(target.keys) > 1:
        # One file in each folder, and enough tasks to open them at the same time: left to itself
        # Spark would put a small frame into one task.
        tasks = max(_LEAST_TASKS, len(target.keys) // _FOLDERS_PER_TASK)
        ready = ready.repartition(min(tasks, len(target.keys)), *texts)
    writer = ready.write.options(**_WRITE_OPTIONS).partitionBy(*texts)
    writer.parquet(f"file://{target.staging}")


def _text_columns(frame: Frame, target: Target, names: Sequence[str]) -> dict[str, Column]:
    """The column that names each dimension's folder: a text of the run, null, or outside."""
    functions = spark.functions()
    parts = zip(*(key_parts(key) for key in target.keys), strict=True)
    columns = {}
    for name, keys in zip(names, parts, strict=True):
        if name in frame.columns:
            columns[name] = _text_column(frame, name, list(keys))
        else:  # a run of one partition, which need not be said
            columns[name] = functions.lit(column_text(keys[0]))
    return columns


def _text_column(frame: Frame, name: str, keys: Sequence[PartitionKey]) -> Column:
    functions = spark.functions()
    column = functions.col(f"`{name}`")
    intervals = [key for key in keys if isinstance(key, Interval)]
    if intervals and spark.is_time(frame, name):
        text = window_text_column(column, intervals)
    else:
        text = _known_text(spark.as_text(frame, name), keys)
    outside = functions.coalesce(text, functions.lit(_OUTSIDE))
    return functions.when(column.isNotNull(), outside)


def _known_text(column: Column, keys: Sequence[PartitionKey]) -> Column:
    """The text of the key that a text stands for: as it is in columns or, percent-encoded, in URLs.

    Null for other texts. One that is both, of two keys, stands for the former.
    """
    functions = spark.functions()
    texts = {column_text(key) for key in keys}
    encoded = {key.text: column_text(key) for key in keys if key.text not in texts}
    found = functions.when(column.isin(sorted(texts)), column)
    if not encoded:
        return found
    pairs = (functions.lit(text) for pair in sorted(encoded.items()) for text in pair)
    return functions.coalesce(found, functions.try_element_at(functions.create_map(*pairs), column))


def _refuse_rows_outside(frame: Frame, texts: Mapping[str, Column], target: Target) -> None:
    expected = {key_folder(target.definition, key) for key in target.keys}
    wrong = [path for path in _leaf_folders(target.staging, len(texts)) if path not in expected]
    if wrong:
        rows = sum(_rows_and_bytes(target.staging / path)[0] for path in wrong)
        reasons = dict.fromkeys(
            reason for path in wrong[:100] for reason in _reasons(path, frame, texts)
        )
        raise RowsError(
            f"{rows} rows lie outside the run's {len(target.keys)} partitions:"
            f" {'; '.join(list(reasons)[:_EXAMPLES])}"
        )


def _reasons(path: str, frame: Frame, texts: Mapping[str, Column]) -> Iterator[str]:
    """What is wrong with the rows of one folder, dimension by dimension."""
    functions = spark.functions()
    values = [unescape(part.partition("=")[2]) for part in path.split("/")]
    for (name, text), value in zip(texts.items(), values, strict=True):
        if value == NULL_FOLDER_VALUE:
            yield f"the column {name!r} is null"
        elif value == _OUTSIDE:
            shown = functions.col(f"`{name}`").cast("string").alias("value")
            found = frame.where(text == _OUTSIDE).select(shown).distinct().limit(_EXAMPLES)
            examples = ", ".join(sorted(repr(row["value"]) for row in found.collect()))
            yield f"the column {name!r} holds {examples}"
    if not {NULL_FOLDER_VALUE, _OUTSIDE} & set(values):
        yield f"this run does not make {path}"


def _leaf_folders(root: Path, depth: int) -> list[str]:
    found = root.glob("/".join(["*=*"] * depth))
    return sorted(path.relative_to(root).as_posix() for path in found)


def _fill_empty(frame: Frame, target: Target) -> None:
    """An empty file with the schema for each partition that no row fell into."""
    folders = [target.staging / key_folder(target.definition, key) for key in target.keys]
    empty = [folder for folder in folders if not folder.exists()]
    if not empty:
        return
    scratch = target.staging / "_empty"
    _write(frame.limit(0), scratch)
    (source,) = scratch.glob("*.parquet")
    for folder in empty:
        folder.mkdir(parents=True)
        shutil.copyfile(source, folder / source.name)
    shutil.rmtree(scratch)


def _finish(key: PartitionKey, target: Target) -> StagedPartition:
    path = key_folder(target.definition, key)
    folder = target.staging / path
    rows, size = _rows_and_bytes(folder)
    (folder / target.marker).touch()
    return StagedPartition(key.text, path, rows, size)


def _rows_and_bytes(folder: Path) -> tuple[int, int]:
    from pyarrow import parquet

    files = list(folder.glob("*.parquet"))
    rows = sum(parquet.read_metadata(file).num_rows for file in files)
    return rows, sum(file.stat().st_size for file in files)

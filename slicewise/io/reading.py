"""Reads of many folders, each with its own columns, in as few scans as possible."""

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from slicewise import spark
from slicewise.io.columns import column_names, footer_columns, merge_types
from slicewise.io.files import Files, is_data
from slicewise.io.formats import FORMATS, SCHEMA_FILE, format_of

Frame = Any  # of pyspark, which is not imported for the sake of a type
Session = Any

_INSPECTED_AT_ONCE, _TRIES = 16, 3


@dataclass(frozen=True)
class _Kind:
    """The properties of folders that one scan can read."""

    form: str
    is_own: bool = False
    """Whether Slicewise has written the files; foreign files are read with other options."""
    schema: str | None = None
    """The columns as JSON; None if Spark infers the columns, or they have to be declared."""
    columns: str = ""
    """The columns as a text, for files whose schema is not known."""


_Scan = tuple[_Kind, Sequence[str]]


def read(
    session: Session, root: Files, folders: Sequence[str], columns: Sequence[Mapping[str, Any]]
) -> Frame:
    """Return the data of some folders, whose names below the root contain the partition values.

    A partition that was materialized before the asset's format or columns changed is read in the
    old form.
    """
    return by_name([_read(session, root, scan, columns) for scan in _scans(root, folders)])


def by_name(frames: Sequence[Frame]) -> Frame:
    """Return the rows of all frames; a column that one frame lacks is null in the frame's rows."""
    return reduce(lambda first, second: first.unionByName(second, allowMissingColumns=True), frames)


def _read(
    session: Session, root: Files, scan: _Scan, columns: Sequence[Mapping[str, Any]]
) -> Frame:
    kind, folders = scan
    form = FORMATS[kind.form]
    options = {**root.options, **(form.reading if kind.is_own else form.foreign)}
    reader = session.read.format(form.name).options(**options)
    if kind.schema is not None:
        reader = reader.schema(spark.schema_of(kind.schema))
    elif not form.says_columns:
        reader = reader.schema(_declared_schema(form.name, root.path, columns))
    if list(folders) == ["."]:
        return reader.load(root.url)
    urls = [root.below(folder).url for folder in folders]
    return reader.option("basePath", root.url).load(urls)


def _declared_schema(form: str, path: str, columns: Sequence[Mapping[str, Any]]) -> str:
    """Return the declared columns as a schema, for files without column names and types."""
    if not columns:
        raise ValueError(
            f"the columns of the {form} files in {path} are not known: declare the columns"
            ' of the asset, columns={"name": "string", "at": "timestamp"}'
        )
    return spark.schema_from(columns)


def _scans(root: Files, folders: Sequence[str]) -> list[_Scan]:
    """Return the scans that read the folders.

    Folders without data go along: Spark reports missing data.
    """
    with ThreadPoolExecutor(_INSPECTED_AT_ONCE) as pool:
        kinds = list(pool.map(lambda folder: _inspect(root.below(folder)), folders))
    groups: dict[_Kind, list[str]] = {}
    empty: list[str] = []
    for folder, kind in zip(folders, kinds, strict=True):
        (empty if kind is None else groups.setdefault(kind, [])).append(folder)
    (kind, first_folders), *other_scans = _join_scans(groups.items()) or [
        (_Kind(root.form.name), [])
    ]
    return [(kind, [*first_folders, *empty]), *other_scans]


def _join_scans(groups: Iterable[_Scan]) -> list[_Scan]:
    """Return scans, joined where two differ only in columns that some folders lack."""
    scans: list[_Scan] = []
    for kind, folders in groups:
        for index, (earlier_kind, earlier_folders) in enumerate(scans):
            common_kind = _common_kind(earlier_kind, kind)
            if common_kind is not None:
                scans[index] = (common_kind, [*earlier_folders, *folders])
                break
        else:
            scans.append((kind, folders))
    return scans


def _common_kind(first: _Kind, second: _Kind) -> _Kind | None:
    """Return the kind that covers the folders of two kinds; None if one scan cannot read both."""
    if first.schema is None or second.schema is None:
        return None
    if (first.form, first.is_own) != (second.form, second.is_own):
        return None
    first_schema, second_schema = json.loads(first.schema), json.loads(second.schema)
    if FORMATS[first.form].by_position and column_names(first_schema) != column_names(
        second_schema
    ):
        return None
    schema = merge_types(first_schema, second_schema)
    return None if schema is None else replace(first, schema=json.dumps(schema))


def _inspect(folder: Files) -> _Kind | None:
    """Return the kind of a folder; None without data. Tries again while a folder is replaced."""
    for _ in range(_TRIES - 1):
        with suppress(FileNotFoundError):
            return _inspect_once(folder)
    return _inspect_once(folder)


def _inspect_once(folder: Files) -> _Kind | None:
    infos = folder.listed()
    data = [info for info in infos if is_data(info.base_name)]
    if not data:
        return None
    form = format_of(data[0].base_name) or folder.form
    if any(info.base_name == SCHEMA_FILE for info in infos):
        stored_schema = folder.kept_schema()
        if stored_schema is None:
            raise FileNotFoundError(f"{folder.path}/{SCHEMA_FILE}")
        return _Kind(form.name, form.reading != form.foreign, stored_schema)
    if not form.says_columns:
        return _Kind(form.name)
    filled_file = next((info for info in data if info.size), None)
    if filled_file is None:
        return None
    schema, columns = footer_columns(replace(folder, form=form), filled_file.path)
    return _Kind(form.name, schema=schema, columns=columns)

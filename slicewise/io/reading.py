"""Reading the data of many folders, each by its own columns, in as few scans as can be."""

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from slicewise import spark
from slicewise.io.columns import column_names, footer, merged
from slicewise.io.files import Files, is_data
from slicewise.io.formats import FORMATS, SCHEMA_FILE, format_of

Frame = Any  # of pyspark, which is not imported for the sake of a type
Session = Any

_LOOKED_AT_ONCE, _LOOKS = 16, 3


@dataclass(frozen=True)
class _Kind:
    """What folders have in common that one scan reads."""

    form: str
    is_own: bool = False
    """Whether Slicewise has written them, and they are read otherwise than those of others."""
    schema: str | None = None
    """Their columns as JSON; None where Spark infers them, or they have to be declared."""
    columns: str = ""
    """What is known of their columns without a schema."""


_Scan = tuple[_Kind, Sequence[str]]


def read(
    session: Session, root: Files, folders: Sequence[str], columns: Sequence[Mapping[str, Any]]
) -> Frame:
    """Return the data of some folders, whose names below the root say the partitions.

    A partition that was made before the asset's format or columns were changed is read as it was
    written.
    """
    return by_name([_read(session, root, scan, columns) for scan in _scans(root, folders)])


def by_name(frames: Sequence[Frame]) -> Frame:
    """Return the rows of all frames; a column that one of them lacks is null in its rows."""
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)


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
        reader = reader.schema(_declared(form.name, root.path, columns))
    if list(folders) == ["."]:
        return reader.load(root.url)
    urls = [root.below(folder).url for folder in folders]
    return reader.option("basePath", root.url).load(urls)


def _declared(form: str, path: str, columns: Sequence[Mapping[str, Any]]) -> str:
    """The declared columns as a schema, where the files themselves do not say theirs."""
    if not columns:
        raise ValueError(
            f"nothing says which columns the {form} files in {path} have: declare"
            ' them with the asset, columns={"name": "string", "at": "timestamp"}'
        )
    return spark.schema_from(columns)


def _scans(root: Files, folders: Sequence[str]) -> list[_Scan]:
    """What is read together. Folders without data go along: what is missing, Spark will say."""
    with ThreadPoolExecutor(_LOOKED_AT_ONCE) as pool:
        kinds = list(pool.map(lambda folder: _look(root.below(folder)), folders))
    groups: dict[_Kind, list[str]] = {}
    empty: list[str] = []
    for folder, kind in zip(folders, kinds, strict=True):
        (empty if kind is None else groups.setdefault(kind, [])).append(folder)
    (kind, first), *others = _joined(groups.items()) or [(_Kind(root.form.name), [])]
    return [(kind, [*first, *empty]), *others]


def _joined(groups: Iterable[_Scan]) -> list[_Scan]:
    """One scan of what differs only in columns that a part of it lacks."""
    scans: list[_Scan] = []
    for kind, folders in groups:
        for place, (earlier, there) in enumerate(scans):
            both = _both(earlier, kind)
            if both is not None:
                scans[place] = (both, [*there, *folders])
                break
        else:
            scans.append((kind, folders))
    return scans


def _both(one: _Kind, other: _Kind) -> _Kind | None:
    """As what the folders of two kinds can be read together; None where they cannot."""
    if one.schema is None or other.schema is None:
        return None
    if (one.form, one.is_own) != (other.form, other.is_own):
        return None
    first, second = json.loads(one.schema), json.loads(other.schema)
    if FORMATS[one.form].by_place and column_names(first) != column_names(second):
        return None
    both = merged(first, second)
    return None if both is None else replace(one, schema=json.dumps(both))


def _look(folder: Files) -> _Kind | None:
    """What a folder has; None where there is no data. One that is being replaced is tried again."""
    for _ in range(_LOOKS - 1):
        with suppress(FileNotFoundError):
            return _seen(folder)
    return _seen(folder)


def _seen(folder: Files) -> _Kind | None:
    infos = folder.listed()
    data = [one for one in infos if is_data(one.base_name)]
    if not data:
        return None
    form = format_of(data[0].base_name) or folder.form
    if any(one.base_name == SCHEMA_FILE for one in infos):
        kept = folder.kept_schema()
        if kept is None:
            raise FileNotFoundError(f"{folder.path}/{SCHEMA_FILE}")
        return _Kind(form.name, form.reading != form.foreign, kept)
    if not form.says_columns:
        return _Kind(form.name)
    full = next((one for one in data if one.size), None)
    if full is None:
        return None
    schema, columns = footer(replace(folder, form=form), full.path)
    return _Kind(form.name, schema=schema, columns=columns)

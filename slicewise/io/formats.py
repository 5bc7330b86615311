"""Formats of data files: the options of Spark, and counts of rows without Spark."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from slicewise.errors import DefinitionError

SCHEMA_FILE = "_slicewise-schema.json"
"""A file beside the data with its columns, as Spark writes a schema in JSON."""

_TIMES = {
    # To the microsecond, as Spark stores times.
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
# Values are read back as they were written: also spaces, quotes and line ends within values.
_CSV = {
    "header": "true",
    "escape": '"',
    # A null is not an empty text. Written as in PostgreSQL's COPY: a text of these two characters
    # is lost.
    "nullValue": "\\N",
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
}
_FOREIGN_CSV = {"header": "true", "enforceSchema": "false"}
# A value that is not of its column's type is an error, not a null.
_STRICT = {"mode": "FAILFAST"}


@dataclass(frozen=True, kw_only=True)
class Format:
    """A format of files. ``foreign`` are the options for files that another program has written."""

    name: str
    suffixes: Sequence[str]
    writing: Mapping[str, str] = field(default_factory=dict)
    reading: Mapping[str, str] = field(default_factory=dict)
    foreign: Mapping[str, str] = field(default_factory=dict)
    says_columns: bool = False
    """Whether files of this format contain the names and types of columns."""
    by_position: bool = False
    """Whether a column is identified by position, not by name."""


FORMATS = {
    form.name: form
    for form in (
        Format(name="parquet", suffixes=[".parquet"], says_columns=True),
        Format(
            name="csv",
            suffixes=[".csv"],
            writing={**_CSV, **_TIMES},
            # Files that replaced the files whose columns are stored are not read with the stored
            # columns.
            reading={**_CSV, **_TIMES, **_STRICT, "multiLine": "true", "enforceSchema": "false"},
            foreign={**_FOREIGN_CSV, **_STRICT},
            by_position=True,
        ),
        Format(
            name="json",
            suffixes=[".json", ".jsonl", ".ndjson"],
            writing=_TIMES,
            reading={**_TIMES, **_STRICT},
            foreign=_STRICT,
        ),
        Format(name="orc", suffixes=[".orc"], says_columns=True),
    )
}
_BY_SUFFIX = {suffix: form for form in FORMATS.values() for suffix in form.suffixes}
_COMPRESSED = {".gz", ".bz2", ".zst", ".zstd", ".snappy", ".lz4", ".deflate", ".xz"}
_CHUNK = 1 << 20


def checked_format(declared_format: object, uri: str, storage_formats: Sequence[str]) -> str:
    """Return the format of an asset's files: the declared format, else the format of the URI's
    extension, else the storage's first.

    ``storage_formats`` are the formats of the URI's storage. Raises DefinitionError for any other
    format, and if the declared format and the extension are two formats.
    """
    by_uri = format_of(urlsplit(uri).path)
    if declared_format is None:
        return (
            by_uri.name
            if by_uri is not None and by_uri.name in storage_formats
            else storage_formats[0]
        )
    shown = ", ".join(f'"{name}"' for name in storage_formats)
    if declared_format not in storage_formats:
        raise DefinitionError(f"format is one of {shown}, not {declared_format!r}")
    if by_uri is not None and by_uri.name != declared_format:
        raise DefinitionError(
            f"format={declared_format!r} and the extension of the uri, which is of {by_uri.name},"
            " are two formats; change one of them"
        )
    return str(declared_format)


def format_of(path: str) -> Format | None:
    """Return the format for the extension of a file's, or a folder's, name; else None."""
    suffixes = PurePosixPath(unquote(path)).suffixes
    while suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return _BY_SUFFIX.get(suffixes[-1].lower()) if suffixes else None


def count_rows(form: Format, files: Any, path: str) -> int:
    """Return the number of rows of one file that Slicewise has written.

    ``files`` is a pyarrow file system.
    """
    with files.open_input_file(path) as source:
        if form.name == "parquet":
            from pyarrow import parquet

            return int(parquet.read_metadata(source).num_rows)
        if form.name == "orc":
            from pyarrow import orc

            return int(orc.ORCFile(source).nrows)
        if form.name == "csv":
            return _csv_rows(source)
        return sum(chunk.count(b"\n") for chunk in _chunks(source))


def _csv_rows(source: Any) -> int:
    """Return the number of line ends outside quotes, without the header's.
    Values may have any size.

    Spark quotes a value that contains a quote or a line end, and doubles the quotes of the value.
    """
    ends, is_quoted = 0, False
    for chunk in _chunks(source):
        fragments = chunk.split(b'"')
        ends += b"".join(fragments[is_quoted::2]).count(b"\n")
        is_quoted ^= len(fragments) % 2 == 0
    return max(ends - 1, 0)


def _chunks(source: Any) -> Iterator[bytes]:
    while chunk := source.read(_CHUNK):
        yield chunk

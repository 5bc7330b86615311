"""Formats of data files: how Spark is told, and how their rows are counted without it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from slicewise.errors import DefinitionError

SCHEMA_FILE = "_slicewise-schema.json"
"""Lies beside the data and says its columns, as Spark writes a schema in JSON."""

_TIMES = {
    # To the microsecond, which is what Spark keeps.
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
# What is written is read back as it was: spaces, quotes and line ends within values too.
_CSV = {
    "header": "true",
    "escape": '"',
    # A null is not an empty text. As in PostgreSQL's COPY; a text of these two characters is lost.
    "nullValue": "\\N",
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
}
_FOREIGN_CSV = {"header": "true", "enforceSchema": "false"}
# A value that is not of its column's type is an error, not a null.
_STRICT = {"mode": "FAILFAST"}


@dataclass(frozen=True, kw_only=True)
class Format:
    """A format. ``foreign`` are the options for files that something else has written."""

    name: str
    suffixes: Sequence[str]
    writing: Mapping[str, str] = field(default_factory=dict)
    reading: Mapping[str, str] = field(default_factory=dict)
    foreign: Mapping[str, str] = field(default_factory=dict)
    says_columns: bool = False
    """Whether its files say their columns and types themselves."""
    by_place: bool = False
    """Whether a column is known by its place, not by its name."""


FORMATS = {
    one.name: one
    for one in (
        Format(name="parquet", suffixes=[".parquet"], says_columns=True),
        Format(
            name="csv",
            suffixes=[".csv"],
            writing={**_CSV, **_TIMES},
            # Files that have taken the place of those whose columns are kept are not read by them.
            reading={**_CSV, **_TIMES, **_STRICT, "multiLine": "true", "enforceSchema": "false"},
            foreign={**_FOREIGN_CSV, **_STRICT},
            by_place=True,
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
_BY_SUFFIX = {suffix: one for one in FORMATS.values() for suffix in one.suffixes}
_COMPRESSED = {".gz", ".bz2", ".zst", ".zstd", ".snappy", ".lz4", ".deflate", ".xz"}
_CHUNK = 1 << 20


def checked_format(said: object, uri: str, known: Sequence[str]) -> str:
    """Return the format of an asset's files: what is said, else the URI's extension, else
    the first known.

    ``known`` are those of the URI's storage. Raises DefinitionError for another, and where what is
    said and the extension are two formats.
    """
    by_uri = format_of(urlsplit(uri).path)
    if said is None:
        return by_uri.name if by_uri is not None and by_uri.name in known else known[0]
    shown = ", ".join(f'"{name}"' for name in known)
    if said not in known:
        raise DefinitionError(f"format is one of {shown}, not {said!r}")
    if by_uri is not None and by_uri.name != said:
        raise DefinitionError(
            f"format={said!r} and the extension of the uri, which is of {by_uri.name}, are two"
            " formats; change one of them"
        )
    return str(said)


def format_of(path: str) -> Format | None:
    """Return the format that the extension of a file's, or a folder's, name stands for."""
    suffixes = PurePosixPath(unquote(path)).suffixes
    while suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return _BY_SUFFIX.get(suffixes[-1].lower()) if suffixes else None


def count_rows(form: Format, files: Any, path: str) -> int:
    """The rows of one file that Slicewise has written; ``files`` is a pyarrow file system."""
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
    """Line ends outside of quotes, but for the header's; values may be of any size.

    Spark quotes a value that holds a quote or a line end, and doubles its quotes.
    """
    ends, is_quoted = 0, False
    for chunk in _chunks(source):
        pieces = chunk.split(b'"')
        ends += b"".join(pieces[is_quoted::2]).count(b"\n")
        is_quoted ^= len(pieces) % 2 == 0
    return max(ends - 1, 0)


def _chunks(source: Any) -> Iterator[bytes]:
    while chunk := source.read(_CHUNK):
        yield chunk

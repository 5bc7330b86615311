"""Which columns data files have, learned without Spark: as JSON, in which Spark writes a schema."""

from collections.abc import Iterable
from typing import Any

from slicewise.io.files import Files

Json = Any

_SCHEMA_IN_FOOTER = b"org.apache.spark.sql.parquet.row.metadata"
_PARQUET, _FOOTER_AT_ONCE = b"PAR1", 1 << 16
# How Thrift's compact protocol begins a text that comes right after another one.
_TEXT = b"\x18"
# What is within an array and a map, and whether it may be null.
_WITHIN = {
    "array": (("elementType",), "containsNull"),
    "map": (("keyType", "valueType"), "valueContainsNull"),
}


def known_schema(folder: Files) -> str | None:
    """Return the schema of a folder's data, as far as Slicewise or Spark has left one there."""
    kept = folder.kept_schema()
    if kept is not None or folder.form.name != "parquet":
        return kept
    files = folder.data()
    return footer(folder, files[0].path)[0] if files else None


def footer(folder: Files, path: str) -> tuple[str | None, str]:
    """Return the schema that Spark left in a file, if it left one, else all its columns as
    one text.

    From the former Spark need not infer it, which costs the server a job when a read is planned,
    and another one when it runs. By the latter, files whose columns are the same are known.
    """
    with folder.system.open_input_file(path) as source:
        if folder.form.name == "parquet":
            return _parquet_footer(source)
        if folder.form.name == "orc":
            from pyarrow import orc

            return None, _text(f"{one.name} {one.type}" for one in orc.ORCFile(source).schema)
    return None, ""


def merged(one: Json, other: Json) -> Json | None:
    """Return the type of which both are parts: columns of both, found by name, null where
    they are not.

    None where there is none: of one name, columns have two types or are written in two ways.
    """
    if isinstance(one, str) or isinstance(other, str) or one["type"] != other["type"]:
        return one if one == other else None
    if one["type"] == "struct":
        return _merged_struct(one, other)
    if one["type"] not in _WITHIN:
        return one if one == other else None
    parts, nullable = _WITHIN[one["type"]]
    found = {part: merged(one[part], other[part]) for part in parts}
    return None if None in found.values() else {**one, **found, nullable: True}


def column_names(schema: Json) -> list[str]:
    """Return the names of the columns of a schema, in order."""
    return [field["name"] for field in schema["fields"]]


def _merged_struct(one: Json, other: Json) -> Json | None:
    fields = {field["name"]: {**field, "nullable": True} for field in one["fields"]}
    for field in other["fields"]:
        known = fields.setdefault(field["name"], {**field, "nullable": True})
        both = merged(known["type"], field["type"])
        if both is None:
            return None
        fields[field["name"]] = {**known, "type": both}
    # Which of two that differ in upper and lower case only is meant, Spark is to say.
    if len({name.casefold() for name in fields}) < len(fields):
        return None
    return {**one, "fields": list(fields.values())}


def _parquet_footer(source: Any) -> tuple[str | None, str]:
    from pyarrow import parquet

    said = _found_in_footer(source)
    if said is not None:
        return said.decode(), ""
    metadata = parquet.read_metadata(source)
    columns = (metadata.schema.column(place) for place in range(metadata.num_columns))
    return None, _text(f"{one.path} {one.physical_type} {one.logical_type}" for one in columns)


def _found_in_footer(source: Any) -> bytes | None:
    """The schema of Spark's, looked for as a text: to take a footer apart, with what it says of
    each of hundreds of columns, takes milliseconds, and there may be thousands of files.
    """
    size = source.size()
    end = source.read_at(min(size, _FOOTER_AT_ONCE), max(size - _FOOTER_AT_ONCE, 0))
    if not end.endswith(_PARQUET):
        return None
    length = int.from_bytes(end[-8:-4], "little") + 8
    if length > len(end):
        end = source.read_at(min(length, size), max(size - length, 0))
    _, found, rest = end[-length:].rpartition(_SCHEMA_IN_FOOTER + _TEXT)
    return (_sized(rest) if found else b"") or None


def _sized(content: bytes) -> bytes:
    """The text at the beginning, before which its size stands, seven bits in each byte."""
    size = 0
    for place, byte in enumerate(content):
        size |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return content[place + 1 : place + 1 + size]
    return b""


def _text(columns: Iterable[str]) -> str:
    """Columns that are known by name have no order."""
    return "\n".join(sorted(columns))

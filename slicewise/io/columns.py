"""The columns of data files, found without Spark: as JSON, in which Spark writes a schema."""

from collections.abc import Iterable
from typing import Any

from slicewise.io.files import Files

Json = Any

_SCHEMA_IN_FOOTER = b"org.apache.spark.sql.parquet.row.metadata"
_PARQUET, _FOOTER_AT_ONCE = b"PAR1", 1 << 16
# The first byte of a text that follows another text in Thrift's compact protocol.
_TEXT = b"\x18"
# The inner types of an array and a map, and the field that says whether values may be null.
_INNER_TYPES = {
    "array": (("elementType",), "containsNull"),
    "map": (("keyType", "valueType"), "valueContainsNull"),
}


def known_schema(folder: Files) -> str | None:
    """Return the schema that Slicewise or Spark has stored with a folder's data, else None."""
    stored_schema = folder.kept_schema()
    if stored_schema is not None or folder.form.name != "parquet":
        return stored_schema
    files = folder.data()
    return footer_columns(folder, files[0].path)[0] if files else None


def footer_columns(folder: Files, path: str) -> tuple[str | None, str]:
    """Return (schema, columns) of a file: the schema that Spark stored, or None
    and all columns as a text.

    With a schema Spark need not infer one, which costs the server a job when a read is planned, and
    another job when the read runs. Files with equal columns are recognized by the text.
    """
    with folder.system.open_input_file(path) as source:
        if folder.form.name == "parquet":
            return _parquet_footer(source)
        if folder.form.name == "orc":
            from pyarrow import orc

            return None, _text(
                f"{column.name} {column.type}" for column in orc.ORCFile(source).schema
            )
    return None, ""


def merge_types(first: Json, second: Json) -> Json | None:
    """Return the type with the columns of both types, matched by name; null
    where one lacks a column.

    None if there is no such type: columns of one name have two types or are written in two ways.
    """
    if isinstance(first, str) or isinstance(second, str) or first["type"] != second["type"]:
        return first if first == second else None
    if first["type"] == "struct":
        return _merged_struct(first, second)
    if first["type"] not in _INNER_TYPES:
        return first if first == second else None
    type_fields, nullable = _INNER_TYPES[first["type"]]
    merged_types = {
        type_field: merge_types(first[type_field], second[type_field]) for type_field in type_fields
    }
    return None if None in merged_types.values() else {**first, **merged_types, nullable: True}


def column_names(schema: Json) -> list[str]:
    """Return the names of the columns of a schema, in order."""
    return [field["name"] for field in schema["fields"]]


def _merged_struct(first: Json, second: Json) -> Json | None:
    fields = {field["name"]: {**field, "nullable": True} for field in first["fields"]}
    for field in second["fields"]:
        earlier_field = fields.setdefault(field["name"], {**field, "nullable": True})
        merged_type = merge_types(earlier_field["type"], field["type"])
        if merged_type is None:
            return None
        fields[field["name"]] = {**earlier_field, "type": merged_type}
    # Spark decides between two names that differ in upper and lower case only.
    if len({name.casefold() for name in fields}) < len(fields):
        return None
    return {**first, "fields": list(fields.values())}


def _parquet_footer(source: Any) -> tuple[str | None, str]:
    from pyarrow import parquet

    spark_schema = _spark_schema_in_footer(source)
    if spark_schema is not None:
        return spark_schema.decode(), ""
    metadata = parquet.read_metadata(source)
    columns = (metadata.schema.column(index) for index in range(metadata.num_columns))
    return None, _text(
        f"{column.path} {column.physical_type} {column.logical_type}" for column in columns
    )


def _spark_schema_in_footer(source: Any) -> bytes | None:
    """Return Spark's schema, found by a search in the footer's bytes: to parse a footer, with the
    facts about each of hundreds of columns, takes milliseconds, and there may be thousands of
    files.
    """
    size = source.size()
    end = source.read_at(min(size, _FOOTER_AT_ONCE), max(size - _FOOTER_AT_ONCE, 0))
    if not end.endswith(_PARQUET):
        return None
    length = int.from_bytes(end[-8:-4], "little") + 8
    if length > len(end):
        end = source.read_at(min(length, size), max(size - length, 0))
    _, separator, rest = end[-length:].rpartition(_SCHEMA_IN_FOOTER + _TEXT)
    return (_read_sized(rest) if separator else b"") or None


def _read_sized(content: bytes) -> bytes:
    """Return the text at the beginning, after its size, which has seven bits in each byte."""
    size = 0
    for index, byte in enumerate(content):
        size |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return content[index + 1 : index + 1 + size]
    return b""


def _text(columns: Iterable[str]) -> str:
    """Return the columns as one text, sorted: columns that are matched by name have no order."""
    return "\n".join(sorted(columns))

"""The check that rows to be appended have columns that fit the data of the partition."""

from collections.abc import Iterable
from typing import Any

from slicewise import spark
from slicewise.io.base import StorageLocation
from slicewise.io.columns import known_schema
from slicewise.io.files import Files
from slicewise.io.frames import Frame, RowsError
from slicewise.partitions.definition import PartitionDefinition
from slicewise.partitions.partition_paths import dimension_names


def refuse_other_columns(
    frame: Frame,
    definition: PartitionDefinition | None,
    latest_files: Iterable[tuple[str, Files]],
    location: StorageLocation,
) -> None:
    """Raise RowsError if the present data and the frame could not be read together.

    ``latest_files`` are the partitions' paths, each with the folder of the latest files.

    Columns of one name must have one type. CSV identifies a column by position, so that all columns
    must be the same there.
    """
    frame_schema = frame.drop(*dimension_names(definition)).schema
    for path, folder in latest_files:
        schema = known_schema(folder)
        if schema is not None:
            _compare(frame_schema, spark.schema_of(schema), path, folder.form.name, location.asset)


def _compare(frame_schema: Any, present_schema: Any, path: str, form: str, asset: str) -> None:
    types = {field.name: field.dataType.simpleString() for field in present_schema}
    for field in frame_schema:
        type_name = field.dataType.simpleString()
        if types.get(field.name, type_name) != type_name:
            raise RowsError(
                f"{asset} {path} holds a column {field.name!r} of type {types[field.name]}; rows"
                f" with a column of type {type_name} cannot be appended"
            )
    names = [field.name for field in frame_schema]
    if form == "csv" and names != list(types):
        raise RowsError(
            f"{asset} {path} holds the columns {', '.join(types)}; CSV knows columns by"
            f" position, so that rows of {', '.join(names)} cannot be appended"
        )
    missing_names = [name for name in types if name not in names]
    if missing_names:
        raise RowsError(
            f"{asset} {path} holds a column {missing_names[0]!r}, which the rows to be appended do"
            " not have; add the column, with nulls if need be"
        )

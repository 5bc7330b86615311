"""What may be appended to a partition: rows whose columns fit those that are there."""

from collections.abc import Iterable
from typing import Any

from slicewise import spark
from slicewise.definitions import PartitionDefinition
from slicewise.folders import dimension_names
from slicewise.frames import Frame, RowsError
from slicewise.io.base import Place
from slicewise.io.columns import known_schema
from slicewise.io.files import Files


def refuse_other_columns(
    frame: Frame,
    definition: PartitionDefinition | None,
    there: Iterable[tuple[str, Files]],
    place: Place,
) -> None:
    """Raise RowsError where what is there and the frame could not be read together.

    ``there`` are partitions, each with the folder of its latest files.

    Of one name a column has one type. A column of CSV is known by its place, so that there all are
    the same.
    """
    own = frame.drop(*dimension_names(definition)).schema
    for path, folder in there:
        schema = known_schema(folder)
        if schema is not None:
            _compare(own, spark.schema_of(schema), path, folder.form.name, place.asset)


def _compare(own: Any, there: Any, path: str, form: str, asset: str) -> None:
    types = {field.name: field.dataType.simpleString() for field in there}
    for field in own:
        said = field.dataType.simpleString()
        if types.get(field.name, said) != said:
            raise RowsError(
                f"{asset} {path} holds a column {field.name!r} of type {types[field.name]}; rows"
                f" with one of type {said} cannot be appended to it"
            )
    names = [field.name for field in own]
    if form == "csv" and names != list(types):
        raise RowsError(
            f"{asset} {path} holds the columns {', '.join(types)}; CSV knows columns by their"
            f" place, so that rows of {', '.join(names)} cannot be appended to it"
        )
    gone = [name for name in types if name not in names]
    if gone:
        raise RowsError(
            f"{asset} {path} holds a column {gone[0]!r}, which the rows to be appended do not have;"
            " add it, as nulls if need be"
        )

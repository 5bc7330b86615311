"""The partitions to which the rows of a frame belong, for every storage."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from slicewise import spark
from slicewise.io.window_columns import window_text_column
from slicewise.keys.column_texts import column_text, dimension_keys
from slicewise.keys.partition_key import Interval, PartitionKey
from slicewise.partitions.definition import PartitionDefinition
from slicewise.partitions.partition_paths import dimension_names
from slicewise.texts import counted

# Keys hold no control characters, so no key equals this text.
OUTSIDE = "\x01outside"
"""The text in a dimension's column for a row that belongs to no partition of the run."""
_EXAMPLES, _JOINT = 3, "\x02"

Frame = Any  # a DataFrame of pyspark, which is not imported for the sake of a type
Column = Any


class RowsError(ValueError):
    """Rows belong to no partition of the run, or the frame does not say the partitions of rows."""


def lacks_dimension_columns(
    frame: Frame, definition: PartitionDefinition | None, keys: Sequence[PartitionKey]
) -> bool:
    """Return whether the frame has no dimension column, so that all rows are of one partition.

    Raises RowsError where there are several partitions and a column is missing, and for a column
    whose name differs from a dimension's name only in upper and lower case.
    """
    names = dimension_names(definition)
    _refuse_other_case(frame, names)
    missing = [name for name in names if name not in frame.columns]
    if missing and len(keys) > 1:
        raise RowsError(_missing_columns_sentence(definition, missing, len(keys)))
    return len(missing) == len(names)


def text_columns(
    frame: Frame, definition: PartitionDefinition | None, keys: Sequence[PartitionKey]
) -> dict[str, Column]:
    """Return a column for each dimension: the text of a key of the run, null, or `OUTSIDE`.

    Raises RowsError for a column whose name differs from a dimension's name only in upper and lower
    case.
    """
    functions = spark.functions()
    names = dimension_names(definition)
    _refuse_other_case(frame, names)
    components = zip(*(dimension_keys(key) for key in keys), strict=True)
    columns = {}
    for name, column_keys in zip(names, components, strict=True):
        if name in frame.columns:
            columns[name] = _text_column(frame, name, list(column_keys))
        else:  # may be missing in a run of one partition
            columns[name] = functions.lit(column_text(column_keys[0]))
    return columns


def rows_of_partitions(
    frame: Frame,
    definition: PartitionDefinition | None,
    keys: Sequence[PartitionKey],
    *,
    keeps_null: bool = False,
) -> Frame:
    """Return the rows of a frame that belong to the partitions, by the columns of dimensions.

    A dimension without a column removes no row. With ``keeps_null``, rows with a null in such a
    column stay.
    """
    functions = spark.functions()
    names = [name for name in dimension_names(definition) if name in frame.columns]
    if not names:
        return frame
    texts = {
        name: text for name, text in text_columns(frame, definition, keys).items() if name in names
    }
    key_components = [
        dict(zip(dimension_names(definition), dimension_keys(key), strict=True)) for key in keys
    ]
    # No text of a key holds the joining character.
    wanted = {
        _JOINT.join(column_text(components[name]) for name in names)
        for components in key_components
    }
    condition = functions.concat_ws(_JOINT, *texts.values()).isin(sorted(wanted))
    for text in texts.values():
        condition = condition | text.isNull() if keeps_null else condition & text.isNotNull()
    return frame.where(condition)


def outside_sentence(
    rows: int,
    dimension_values: Sequence[Mapping[str, str | None]],
    frame: Frame,
    texts: Mapping[str, Column],
    count: int,
) -> str:
    """Return the error sentence for rows outside the run's ``count`` partitions.

    ``dimension_values`` are the distinct values of the rows in the dimensions' columns.
    """
    reasons = dict.fromkeys(
        reason for values in dimension_values[:100] for reason in _reasons(values, frame, texts)
    )
    shown_count = counted(count, "partition")
    return (
        f"{rows} {'row lies' if rows == 1 else 'rows lie'} outside the run's {shown_count}:"
        f" {'; '.join(list(reasons)[:_EXAMPLES])}. Filter the frame by"
        ' context["partition"].filter(frame), or declare outside="drop"'
    )


def _missing_columns_sentence(
    definition: PartitionDefinition | None, missing: Sequence[str], count: int
) -> str:
    """Return the error sentence for a frame without the columns of some dimensions."""
    dimensions = () if definition is None else definition.dimensions
    has_missing_time = any(
        dimension.name in missing and dimension.definition.time_dimension is not None
        for dimension in dimensions
    )
    advice = (
        "slicewise.partition_column derives the column from a timestamp"
        if has_missing_time
        else f"add the column, or rename a column that holds the keys of {missing[0]!r}"
    )
    return (
        f"the run covers {count} partitions, and the frame has no column"
        f" {' and '.join(map(repr, missing))} that names the partition of a row; {advice}"
    )


def _refuse_other_case(frame: Frame, names: Sequence[str]) -> None:
    """Raise RowsError for a column that differs from a dimension's name only in case.

    Spark takes such a column for the dimension's column, and the rows would not be checked.
    """
    names_by_folded = {name.casefold(): name for name in names}
    for column in frame.columns:
        name = names_by_folded.get(column.casefold())
        if name is not None and column not in names:
            raise RowsError(
                f"the frame has a column {column!r}, and the dimension is called {name!r}: Spark"
                " does not tell upper from lower case; rename the column"
            )


def _reasons(
    values: Mapping[str, str | None], frame: Frame, texts: Mapping[str, Column]
) -> Iterator[str]:
    """Yield the problems of the rows with these values, dimension by dimension."""
    functions = spark.functions()
    for name, value in values.items():
        if value is None:
            yield f"the column {name!r} is null"
        elif value == OUTSIDE:
            shown = functions.col(f"`{name}`").cast("string").alias("value")
            outside_values = (
                frame.where(texts[name] == OUTSIDE).select(shown).distinct().limit(_EXAMPLES)
            )
            examples = ", ".join(sorted(repr(row["value"]) for row in outside_values.collect()))
            yield f"the column {name!r} holds {examples}"
    if not {None, OUTSIDE} & set(values.values()):
        shown = ", ".join(f"{name}={value}" for name, value in values.items())
        yield f"this run does not write {shown}"


def _text_column(frame: Frame, name: str, keys: Sequence[PartitionKey]) -> Column:
    functions = spark.functions()
    column = functions.col(f"`{name}`")
    intervals = [key for key in keys if isinstance(key, Interval)]
    if intervals and spark.is_time(frame, name):
        text = window_text_column(column, intervals)
    else:
        text = _key_text(spark.as_text(frame, name), keys)
    outside = functions.coalesce(text, functions.lit(OUTSIDE))
    return functions.when(column.isNotNull(), outside)


def _key_text(column: Column, keys: Sequence[PartitionKey]) -> Column:
    """Return the column text of the key that a text names, null for other texts.

    The text is a key's text in columns or the percent-encoded text in URLs. A text that is the
    former of one key and the latter of another key names the former.
    """
    functions = spark.functions()
    texts = {column_text(key) for key in keys}
    encoded = {key.text: column_text(key) for key in keys if key.text not in texts}
    key_text = functions.when(column.isin(sorted(texts)), column)
    if not encoded:
        return key_text
    pairs = (functions.lit(text) for pair in sorted(encoded.items()) for text in pair)
    return functions.coalesce(
        key_text, functions.try_element_at(functions.create_map(*pairs), column)
    )

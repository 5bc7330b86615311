"""How the rows of a frame find their partitions, wherever the data is kept."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from slicewise import spark
from slicewise.columns import window_text_column
from slicewise.definitions import PartitionDefinition
from slicewise.folders import column_text, dimension_names, key_parts
from slicewise.intervals import Interval
from slicewise.keys import PartitionKey

# No key holds a control character, so that none is taken for it.
OUTSIDE = "\x01outside"
"""What stands in a dimension's column for a row of no partition of the run."""
_EXAMPLES, _JOINT = 3, "\x02"

Frame = Any  # a DataFrame of pyspark, which is not imported for the sake of a type
Column = Any


class RowsError(ValueError):
    """Rows that belong to no partition of the run, or a frame that cannot say where they belong."""


def says_nothing(
    frame: Frame, definition: PartitionDefinition | None, keys: Sequence[PartitionKey]
) -> bool:
    """Return whether the frame is all of one partition, and has no column that says so.

    Raises RowsError where there are several partitions and a column is missing, and for a column
    that is a dimension's but for upper and lower case.
    """
    names = dimension_names(definition)
    _refuse_other_case(frame, names)
    missing = [name for name in names if name not in frame.columns]
    if missing and len(keys) > 1:
        columns = " and ".join(repr(name) for name in missing)
        raise RowsError(
            f"the run makes {len(keys)} partitions, and the frame has no column {columns} that says"
            " to which one a row belongs; slicewise.partition_column makes one from a timestamp"
        )
    return len(missing) == len(names)


def text_columns(
    frame: Frame, definition: PartitionDefinition | None, keys: Sequence[PartitionKey]
) -> dict[str, Column]:
    """Return the column that says each dimension: the text of a key of the run, null, or `OUTSIDE`.

    Raises RowsError for a column that is a dimension's but for upper and lower case.
    """
    functions = spark.functions()
    names = dimension_names(definition)
    _refuse_other_case(frame, names)
    parts = zip(*(key_parts(key) for key in keys), strict=True)
    columns = {}
    for name, own in zip(names, parts, strict=True):
        if name in frame.columns:
            columns[name] = _text_column(frame, name, list(own))
        else:  # a run of one partition, which need not be said
            columns[name] = functions.lit(column_text(own[0]))
    return columns


def within(
    frame: Frame,
    definition: PartitionDefinition | None,
    keys: Sequence[PartitionKey],
    *,
    keeps_null: bool = False,
) -> Frame:
    """Return the rows of a frame that belong to these partitions, by its dimensions' columns.

    A dimension without a column cuts nothing. With ``keeps_null`` rows that say no partition stay.
    """
    functions = spark.functions()
    names = [name for name in dimension_names(definition) if name in frame.columns]
    if not names:
        return frame
    texts = {
        name: text for name, text in text_columns(frame, definition, keys).items() if name in names
    }
    own = [dict(zip(dimension_names(definition), key_parts(key), strict=True)) for key in keys]
    # No text of a key holds the character between them.
    wanted = {_JOINT.join(column_text(parts[name]) for name in names) for parts in own}
    condition = functions.concat_ws(_JOINT, *texts.values()).isin(sorted(wanted))
    for text in texts.values():
        condition = condition | text.isNull() if keeps_null else condition & text.isNotNull()
    return frame.where(condition)


def outside_sentence(
    rows: int,
    found: Sequence[Mapping[str, str | None]],
    frame: Frame,
    texts: Mapping[str, Column],
    count: int,
) -> str:
    """What is wrong with rows of no partition of the run, which has ``count``.

    ``found`` are the values of the dimensions' columns that the rows have.
    """
    reasons = dict.fromkeys(
        reason for values in found[:100] for reason in _reasons(values, frame, texts)
    )
    which = f"{count} partition{'' if count == 1 else 's'}"
    return (
        f"{rows} {'row lies' if rows == 1 else 'rows lie'} outside the run's {which}:"
        f" {'; '.join(list(reasons)[:_EXAMPLES])}. Cut the frame to them by"
        ' context["partition"].filter(frame), or declare outside="drop"'
    )


def _refuse_other_case(frame: Frame, names: Sequence[str]) -> None:
    """Spark takes such a column for the dimension's own, and its rows would not be looked at."""
    own = {name.casefold(): name for name in names}
    for column in frame.columns:
        name = own.get(column.casefold())
        if name is not None and column not in names:
            raise RowsError(
                f"the frame has a column {column!r}, and the dimension is called {name!r}: Spark"
                " does not tell upper from lower case; rename the column"
            )


def _reasons(
    values: Mapping[str, str | None], frame: Frame, texts: Mapping[str, Column]
) -> Iterator[str]:
    """What is wrong with the rows of one place, dimension by dimension."""
    functions = spark.functions()
    for name, value in values.items():
        if value is None:
            yield f"the column {name!r} is null"
        elif value == OUTSIDE:
            shown = functions.col(f"`{name}`").cast("string").alias("value")
            found = frame.where(texts[name] == OUTSIDE).select(shown).distinct().limit(_EXAMPLES)
            examples = ", ".join(sorted(repr(row["value"]) for row in found.collect()))
            yield f"the column {name!r} holds {examples}"
    if not {None, OUTSIDE} & set(values.values()):
        shown = ", ".join(f"{name}={value}" for name, value in values.items())
        yield f"this run does not make {shown}"


def _text_column(frame: Frame, name: str, keys: Sequence[PartitionKey]) -> Column:
    functions = spark.functions()
    column = functions.col(f"`{name}`")
    intervals = [key for key in keys if isinstance(key, Interval)]
    if intervals and spark.is_time(frame, name):
        text = window_text_column(column, intervals)
    else:
        text = _known_text(spark.as_text(frame, name), keys)
    outside = functions.coalesce(text, functions.lit(OUTSIDE))
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

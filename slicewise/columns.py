"""Columns that say to which partition a row belongs."""

from collections.abc import Iterable, Mapping, Sequence
from math import gcd
from typing import TYPE_CHECKING, Any

from slicewise import spark
from slicewise.definitions import PartitionDefinition
from slicewise.errors import DefinitionError
from slicewise.folders import column_text, key_parts
from slicewise.intervals import Interval

if TYPE_CHECKING:
    from slicewise.handles import AssetHandle

# Up to so many windows are compared one by one; more are found by a table in one step.
_FEW_WINDOWS = 8
_TABLE_LIMIT = 1_000_000
_SEPARATOR = "\n"

Column = Any  # of pyspark, which is not imported for the sake of a type


def partition_column(
    column: "Column | str",
    of: "AssetHandle | Mapping[str, AssetHandle] | PartitionDefinition",
    *,
    dimension: str | None = None,
) -> Column:
    """Return the key text of the window that contains a timestamp or date; null outside of
    all windows.

    ``of`` is an asset's handle (its windows are those that the run touches) or a definition with
    both bounds. A date, or a timestamp without zone, is read in the zone of the definition.
    ``dimension`` is needed where several dimensions could be meant; by default it is the one of
    time. Raises DefinitionError when there is none.
    """
    intervals = _intervals(of, dimension)
    return window_text_column(_column(column), intervals)


def window_text_column(column: Column, intervals: Sequence[Interval]) -> Column:
    """Return the text of the interval that contains an instant, by one lookup whatever
    their number.
    """
    functions = spark.functions()
    ordered = sorted(set(intervals))
    if not ordered:
        return functions.lit(None).cast("string")
    seconds = functions.unix_seconds(_instant(column, ordered[0].zone))
    step, base, stop = _grid(ordered)
    if len(ordered) <= _FEW_WINDOWS or (stop - base) // step > _TABLE_LIMIT:
        return functions.coalesce(*(_text_within(seconds, window) for window in ordered))
    # The table is one literal, split once when the query is planned.
    table = functions.split(functions.lit(_SEPARATOR.join(_table(ordered))), _SEPARATOR)
    place = functions.floor((seconds - base) / step).cast("int")
    inside = (seconds >= base) & (seconds < stop)
    return functions.when(inside, functions.nullif(functions.get(table, place), functions.lit("")))


def _column(column: "Column | str") -> Column:
    return spark.functions().col(column) if isinstance(column, str) else column


def _instant(column: Column, zone: str) -> Column:
    """An instant as it is; a date or wall-clock time as the instant at which the zone shows it."""
    functions = spark.functions()
    local = functions.to_utc_timestamp(column.cast("timestamp"), zone)
    is_local = functions.typeof(column).isin("date", "timestamp_ntz")
    return functions.when(is_local, local).otherwise(column.cast("timestamp"))


def _text_within(seconds: Column, window: Interval) -> Column:
    functions = spark.functions()
    inside = (seconds >= window.first_second) & (seconds < window.stop_second)
    return functions.when(inside, functions.lit(column_text(window)))


def _grid(ordered: Sequence[Interval]) -> tuple[int, int, int]:
    """The widest step, first and last instant of a grid on which all windows begin and end."""
    base = ordered[0].first_second
    edges = {edge - base for w in ordered for edge in (w.first_second, w.stop_second)}
    return gcd(*edges), base, max(window.stop_second for window in ordered)


def _table(ordered: Sequence[Interval]) -> Iterable[str]:
    """The text of the window over each step of the grid; empty between windows."""
    step, base, stop = _grid(ordered)
    texts = [""] * ((stop - base) // step)
    for window in ordered:
        first, last = (window.first_second - base) // step, (window.stop_second - base) // step
        texts[first:last] = [column_text(window)] * (last - first)
    return texts


def _intervals(
    of: "AssetHandle | Mapping[str, AssetHandle] | PartitionDefinition", dimension: str | None
) -> list[Interval]:
    if isinstance(of, Mapping):
        name = next(iter(of), "...")
        raise DefinitionError(
            f"partition_column is of one asset, and this function makes several; write"
            f" self[{name!r}]"
        )
    definition = of if isinstance(of, PartitionDefinition) else of.definition
    if definition is None:
        raise DefinitionError("an asset that is not partitioned has no partition column")
    if isinstance(of, PartitionDefinition):
        keys: Iterable[Any] = of.keys()
    else:
        keys = of.keys
    found = [
        part
        for key in keys
        for one, part in zip(definition.dimensions, key_parts(key), strict=True)
        if isinstance(part, Interval) and dimension in (None, one.name)
    ]
    if not found and definition.time_dimension is None:
        raise DefinitionError("partition_column needs a dimension of time, and there is none")
    return found

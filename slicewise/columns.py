"""DataFrame columns with the partition of each row."""

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

# Up to this number, windows are compared one by one; for more, a table gives the window in a step.
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

    ``of`` is an asset's handle (with the windows that the run touches) or a definition with both
    bounds. A date, or a timestamp without zone, is read in the zone of the definition.
    ``dimension`` is the name of the dimension, needed where several are possible; the default is
    the dimension of time. Raises DefinitionError when there is no such dimension.
    """
    intervals = _intervals(of, dimension)
    return window_text_column(_column(column), intervals)


def window_text_column(column: Column, intervals: Sequence[Interval]) -> Column:
    """Return the text of the interval that contains an instant, by one lookup for any number of
    intervals.
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
    grid_index = functions.floor((seconds - base) / step).cast("int")
    inside = (seconds >= base) & (seconds < stop)
    return functions.when(
        inside, functions.nullif(functions.get(table, grid_index), functions.lit(""))
    )


def _column(column: "Column | str") -> Column:
    return spark.functions().col(column) if isinstance(column, str) else column


def _instant(column: Column, zone: str) -> Column:
    """Return a column of instants: a date or wall-clock time is read in the zone."""
    functions = spark.functions()
    local = functions.to_utc_timestamp(column.cast("timestamp"), zone)
    is_local = functions.typeof(column).isin("date", "timestamp_ntz")
    return functions.when(is_local, local).otherwise(column.cast("timestamp"))


def _text_within(seconds: Column, window: Interval) -> Column:
    functions = spark.functions()
    inside = (seconds >= window.first_second) & (seconds < window.stop_second)
    return functions.when(inside, functions.lit(column_text(window)))


def _grid(ordered: Sequence[Interval]) -> tuple[int, int, int]:
    """Return (step, base, stop): the widest step, the first and the last instant of a grid on
    which all windows begin and end.
    """
    base = ordered[0].first_second
    edges = {edge - base for w in ordered for edge in (w.first_second, w.stop_second)}
    return gcd(*edges), base, max(window.stop_second for window in ordered)


def _table(ordered: Sequence[Interval]) -> Iterable[str]:
    """Return the text of the window at each step of the grid; empty between windows."""
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
    intervals = [
        component
        for key in keys
        for own_dimension, component in zip(definition.dimensions, key_parts(key), strict=True)
        if isinstance(component, Interval) and dimension in (None, own_dimension.name)
    ]
    if not intervals and definition.time_dimension is None:
        raise DefinitionError("partition_column needs a dimension of time, and there is none")
    return intervals

"""Columns of DataFrames with the text of the window of each row."""

from collections.abc import Iterable, Sequence
from math import gcd
from typing import Any

from slicewise import spark
from slicewise.keys.column_texts import column_text
from slicewise.keys.partition_key import Interval

# Up to this number, windows are compared one by one; for more, a table gives the window in a step.
_FEW_WINDOWS = 8
_TABLE_LIMIT = 1_000_000
_SEPARATOR = "\n"

Column = Any  # of pyspark, which is not imported for the sake of a type


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

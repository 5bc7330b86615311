"""The column of a DataFrame with the window of each row, for the functions of assets."""

from collections.abc import Iterable, Mapping
from typing import Any

from slicewise import spark
from slicewise.errors import DefinitionError
from slicewise.io.window_columns import Column, window_text_column
from slicewise.keys.column_texts import dimension_keys
from slicewise.keys.partition_key import Interval
from slicewise.partitions.definition import PartitionDefinition
from slicewise.running.handles import AssetHandle


def partition_column(
    column: Column | str,
    of: AssetHandle | Mapping[str, AssetHandle] | PartitionDefinition,
    *,
    dimension: str | None = None,
) -> Column:
    """Return the key text of the window that contains a timestamp or date; null outside of
    all windows.

    ``of`` is an asset's handle (with the windows that the run touches) or a definition with both
    bounds. A date, or a timestamp without zone, is read in the zone of the definition.
    ``dimension`` is the name of the dimension of time, which is found without the name. Raises
    DefinitionError for another name, and when there is no dimension of time.
    """
    intervals = _intervals(of, dimension)
    return window_text_column(_column(column), intervals)


def _column(column: Column | str) -> Column:
    return spark.functions().col(column) if isinstance(column, str) else column


def _intervals(
    of: AssetHandle | Mapping[str, AssetHandle] | PartitionDefinition, dimension: str | None
) -> list[Interval]:
    if isinstance(of, Mapping):
        name = next(iter(of), "...")
        raise DefinitionError(
            f"partition_column is of one asset, and this function has several outlets;"
            f" write self[{name!r}]"
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
        for own_dimension, component in zip(definition.dimensions, dimension_keys(key), strict=True)
        if isinstance(component, Interval) and dimension in (None, own_dimension.name)
    ]
    if intervals:
        return intervals
    names = [own.name for own in definition.dimensions if own.definition.time_dimension is not None]
    if not names:
        raise DefinitionError(
            "partition_column needs a dimension of time, and the definition has no such dimension"
        )
    if dimension not in (None, *names):
        raise DefinitionError(
            f"{dimension!r} is no dimension of time; the dimension of time is {names[0]!r}"
        )
    return intervals

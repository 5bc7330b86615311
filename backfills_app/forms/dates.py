"""The dates between which an asset has partitions, for date pickers and examples."""

from dataclasses import dataclass
from datetime import datetime

from assets_app.models import Asset
from assets_app.queries.grid import clock_of
from partitions_app.grid.periods import span_of


@dataclass(frozen=True, slots=True)
class Dates:
    """The local dates of the first and the last partition that has begun, as ISO texts."""

    first: str = ""
    last: str = ""


def dates_of(asset: Asset, now: datetime) -> Dates:
    """Return the dates of an asset's partitions; empty texts without time."""
    definition = asset.definition
    time_definition = None if definition is None else definition.time_dimension
    if time_definition is None:
        return Dates()
    first, last = span_of(time_definition, clock_of(asset, now))
    return Dates(first.isoformat(), last.isoformat())

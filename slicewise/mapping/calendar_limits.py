"""The check that a mapping counts to windows of Python's calendar."""

from slicewise.calendar.zones import BEGIN, END
from slicewise.errors import DefinitionError
from slicewise.partitions.by_interval import PartitionByInterval
from slicewise.partitions.runtime_keys import Definition


def check_within_calendar(mapping: object, downstream: Definition, first: int, last: int) -> None:
    """Raise DefinitionError where all windows from `first` to `last`, counted from a window of the
    definition, lie outside the years 1 to 9999.

    Such a mapping would need nothing. Definitions of plug-ins, which may know few years, are not
    checked.
    """
    definition = None if downstream is None else downstream.time_dimension
    if not isinstance(definition, PartitionByInterval):
        return
    windows = definition.space.time
    begins = windows.ticks.rank(0) if windows.lowest is None else windows.lowest
    ends = windows.ticks.rank(0) if windows.highest is None else windows.highest
    if begins + last < windows.ticks.rank(BEGIN) or ends + first > windows.ticks.rank(END):
        raise DefinitionError(
            f"{mapping!r} selects no window of {definition!r} within the years 1 to 9999"
        )

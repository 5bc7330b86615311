"""The times of an asset's scheduled writes, resolved: time zone, bounds, partition="auto"."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from slicewise.calendar.zones import zone
from slicewise.declaring.options import Partition, RunOptions, When
from slicewise.declaring.schedules import Schedule, schedule_json
from slicewise.errors import DefinitionError
from slicewise.partitions.by_interval import PartitionByInterval
from slicewise.partitions.definition import PartitionDefinition
from slicewise.plugins import check_installed


@dataclass(frozen=True)
class Timing:
    """The resolved time options of a function, complete without further look-ups."""

    timezone: str
    """The time zone of the schedule: as written, else of the partition, else UTC."""
    start: datetime | None
    end: datetime | None
    """The first and last moment of scheduled writes, aware; None: from activation, without end."""
    partition: PartitionDefinition | None
    """The partition definition, also if ``"auto"`` was written (AIP-73)."""


def resolve(options: RunOptions) -> Timing:
    """Resolve the options schedule, timezone, start_date, end_date and partition.

    Dates and naive datetimes are wall time in the time zone (calendar rule 8). Raises
    DefinitionError.
    """
    check_partition(options.partition)
    schedule_json(options.schedule)
    timezone = _timezone(options.timezone, options.partition)
    windows = _windows(options.schedule, timezone, options.start_date, options.end_date)
    partition = options.partition if isinstance(options.partition, PartitionDefinition) else None
    if options.partition == "auto" and isinstance(options.schedule, str | timedelta):
        partition = windows
    return Timing(timezone, windows.start, windows.end, partition)


def check_partition(partition: object) -> None:
    """Raise DefinitionError for a value that is neither a definition, "auto" nor None.

    A definition of a class that servers do not have is refused, too: servers import no definition
    file.
    """
    if isinstance(partition, PartitionDefinition):
        return check_installed(partition)
    if partition is None or partition == "auto":
        return None
    if isinstance(partition, str):
        raise DefinitionError(
            f"partition={partition!r} is no partition definition;"
            f" write partition=PartitionByInterval({partition!r})"
        )
    raise DefinitionError(
        f'partition is a partition definition, "auto" or none, not {_kind_of(partition)}'
    )


def _timezone(declared: object, partition: Partition) -> str:
    if declared is None:
        time = partition.time_dimension if isinstance(partition, PartitionDefinition) else None
        return time.timezone if time is not None else "UTC"
    if not isinstance(declared, str):
        raise DefinitionError(f"timezone is a name such as 'Europe/Berlin', not {declared!r}")
    return zone(declared).name


def _windows(schedule: Schedule, timezone: str, start: When, end: When) -> PartitionByInterval:
    """Return the definition of windows between ticks, which parses the bounds for any schedule."""
    cadence = schedule if isinstance(schedule, str | timedelta) else "@daily"
    try:
        return PartitionByInterval(cadence, timezone=timezone, start=start, end=end)
    except DefinitionError as error:
        raise DefinitionError(f"start_date and end_date: {error}") from None


def _kind_of(value: object) -> str:
    if isinstance(value, type) and issubclass(value, PartitionDefinition):
        return f"the class {value.__name__}; write {value.__name__}(...)"
    return type(value).__name__

"""Checks of options that act only together with others: ignored options are refused."""

from datetime import timedelta

from slicewise.declaring.options import RunOptions, with_options
from slicewise.declaring.schedules import plain_time, schedule_json, time_terms
from slicewise.errors import DefinitionError
from slicewise.partitions.definition import PartitionDefinition


def with_plain_time(options: RunOptions) -> RunOptions:
    """Return options with a schedule of one time term written as the equal text or timedelta.

    The term's time zone becomes the option ``timezone``. Raises DefinitionError if two different
    time zones are written.
    """
    schedule, timezone = plain_time(options.schedule)
    if schedule is options.schedule:
        return options
    if timezone is not None and options.timezone not in (None, timezone):
        raise DefinitionError(
            f"timezone={options.timezone!r} is not the time zone of {options.schedule!r}; leave"
            " timezone out"
        )
    return with_options(options, schedule=schedule, timezone=timezone or options.timezone)


def check_pairs(options: RunOptions, partition: PartitionDefinition | None) -> None:
    """Raise DefinitionError for an option that has no effect with the other options.

    ``partition`` is the resolved partition definition, also if ``"auto"`` was written.
    """
    has_windows = partition is not None and partition.time_dimension is not None
    _check_past(options, has_windows)
    _check_bounds(options)
    if options.refresh:
        _check_ticks("refresh", options, has_windows)
    if options.pending == "latest":
        _check_ticks('pending="latest"', options, has_windows)


def _check_past(options: RunOptions, has_windows: bool) -> None:
    if options.depends_on_past and not has_windows:
        raise DefinitionError(
            "depends_on_past needs partitions by time, since other partitions have no order; leave"
            " depends_on_past out"
        )
    if options.depends_on_past and options.pending == "latest":
        raise DefinitionError(
            'depends_on_past cannot be combined with pending="latest", which skips earlier'
            " partitions; leave one of the two out"
        )


def _check_bounds(options: RunOptions) -> None:
    names = [name for name in ("start_date", "end_date") if getattr(options, name) is not None]
    if not names or isinstance(options.schedule, str | timedelta):
        return
    bound = {"start_date": "start", "end_date": "end"}[names[0]]
    raise DefinitionError(
        f"{names[0]} bounds the ticks of a schedule by time, and {_schedule_of(options)}; bound the"
        f" partitions instead: PartitionByInterval(..., {bound}=...)"
    )


def _check_ticks(shown: str, options: RunOptions, has_windows: bool) -> None:
    """Refuse an option that chooses among the windows that a tick of a schedule makes due."""
    if not isinstance(options.schedule, str | timedelta):
        raise DefinitionError(
            f"{shown} acts at the ticks of a schedule by time, and {_schedule_of(options)};"
            f" leave {shown} out"
        )
    if not has_windows:
        raise DefinitionError(
            f"{shown} needs partitions by time, since a tick makes all other partitions due;"
            f" leave {shown} out"
        )


def _schedule_of(options: RunOptions) -> str:
    if options.schedule is None:
        return "this asset has no schedule"
    if time_terms(schedule_json(options.schedule)):
        return "this schedule joins times and other terms"
    return "this schedule is by assets"

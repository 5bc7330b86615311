"""Warnings about an `exclude=` that removes no window of the definition, or all windows."""

from collections.abc import Iterator
from datetime import UTC, date, datetime

from slicewise.calendar.cadence import read_cron
from slicewise.calendar.ticks import Ticks, ticks_of
from slicewise.calendar.zones import DAY, to_instant
from slicewise.partitions.by_interval import PartitionByInterval
from slicewise.partitions.definition import Excluded, PartitionDefinition

# After this number of years the days of the week fall on the same dates again.
_YEARS = 28
# Any day: where no bound limits the windows, all years are alike.
_TODAY = to_instant(datetime(2024, 1, 1, tzinfo=UTC))
_EPOCH_DAY = date(1970, 1, 1).toordinal()
# How many ticks are compared at most; enough unless both crons tick more often.
_MOST_TICKS = 20_000
# Whether all windows are excluded is determined for at most this many ticks: 28 years of hours.
_MOST_TICKS_IN_ALL = 250_000
_WINDOWS_AT_ONCE = 1_000


def exclusion_warnings(definition: PartitionDefinition | None) -> Iterator[str]:
    """Yield a sentence for each exclusion at which no window of the definition starts, bounds
    aside, and a sentence if no window is left.

    Definitions of plug-ins are not checked, since such a definition may know few years.
    """
    time_definition = None if definition is None else definition.time_dimension
    if not isinstance(time_definition, PartitionByInterval):
        return
    for excluded in time_definition.exclude:
        if not _is_matched(time_definition, excluded):
            when = "on that day" if type(excluded) is date else "then"
            yield (
                f"exclude={str(excluded)!r} excludes no window:"
                f" none of {time_definition.cadence} starts {when}"
            )
    if time_definition.exclude and _excludes_all(time_definition):
        yield "exclude= excludes every window: the asset has no partition"


def _excludes_all(definition: PartitionByInterval) -> bool:
    """Return whether no window is left; False also if the answer would take too many windows."""
    windows = definition.space.time
    ticks, first, stop = windows.ticks, windows.lowest, windows.highest
    if first is None:
        last = ticks.rank(_TODAY) if stop is None else stop
        first = ticks.rank(ticks.tick(last) - _YEARS * 366 * DAY)
    if stop is None:
        stop = ticks.rank(ticks.tick(first) + _YEARS * 366 * DAY)
    since, until = ticks.tick(first), ticks.tick(stop)
    crons = [_cron_ticks(definition, text) for text in definition.exclude if isinstance(text, str)]
    if (
        max(
            cadence_ticks.rank(until) - cadence_ticks.rank(since)
            for cadence_ticks in [ticks, *crons]
        )
        > _MOST_TICKS_IN_ALL
    ):
        return False
    starts = range(first, stop, _WINDOWS_AT_ONCE)
    return first < stop and not any(
        windows.count(start, min(start + _WINDOWS_AT_ONCE, stop)) for start in starts
    )


def _cron_ticks(definition: PartitionByInterval, text: str) -> Ticks:
    return ticks_of(read_cron(text), definition.zone, 0, elapsed=definition.follows_elapsed_time)


def _is_matched(definition: PartitionByInterval, excluded: Excluded) -> bool:
    ticks = definition.space.time.ticks
    if isinstance(excluded, str):
        start = to_instant(definition.start or datetime(2000, 1, 1, tzinfo=UTC))
        cron = _cron_ticks(definition, excluded)
        return _share_a_tick(ticks, cron, start)
    if isinstance(excluded, datetime):
        instant = to_instant(excluded)
        return ticks.tick(ticks.rank(instant)) == instant
    day = excluded.toordinal() - _EPOCH_DAY
    midnights = (definition.zone.first_instant((day + days) * DAY) for days in (0, 1))
    low, high = (ticks.rank(midnight) for midnight in midnights)
    return low < high


def _share_a_tick(windows: Ticks, cron: Ticks, since: int) -> bool:
    until = since + _YEARS * 366 * DAY
    counted = [(ticks.rank(until) - ticks.rank(since), ticks) for ticks in (windows, cron)]
    (count, fewer), (_, more) = sorted(counted, key=lambda pair: pair[0])
    low = fewer.rank(since)
    starts = fewer.ticks(low, low + min(count, _MOST_TICKS))
    return any(more.tick(more.rank(start)) == start for start in starts)

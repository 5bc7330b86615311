"""What people are told of an `exclude=` that takes out no window of its definition, or all."""

from collections.abc import Iterator
from datetime import UTC, date, datetime

from slicewise.by_interval import PartitionByInterval
from slicewise.by_time import Excluded
from slicewise.cadence import read_cron
from slicewise.definitions import PartitionDefinition
from slicewise.ticks import Ticks, place
from slicewise.zones import DAY, to_instant

# The days of the week fall on the same dates after so many years.
_YEARS = 28
# Some day: where nothing bounds windows, all years are alike.
_TODAY = to_instant(datetime(2024, 1, 1, tzinfo=UTC))
_EPOCH_DAY = date(1970, 1, 1).toordinal()
# Of two crons that both tick more often than that, no more is compared.
_MOST_TICKS = 20_000
# Whether all windows are excluded is looked at for no more: 28 years of hours.
_MOST_TICKS_IN_ALL = 250_000
_WINDOWS_AT_ONCE = 1_000


def exclusion_warnings(definition: PartitionDefinition | None) -> Iterator[str]:
    """Yield a sentence for each exclusion at which no window of the definition starts, whatever
    its bounds are, and one where no window is left. Windows of plug-ins are not asked: they may
    know few years.
    """
    rule = None if definition is None else definition.time_dimension
    if not isinstance(rule, PartitionByInterval):
        return
    for excluded in rule.exclude:
        if not _is_matched(rule, excluded):
            when = "on that day" if type(excluded) is date else "then"
            yield (
                f"exclude={str(excluded)!r} takes out no window:"
                f" none of {rule.cadence} starts {when}"
            )
    if rule.exclude and _takes_out_all(rule):
        yield "exclude= takes out every window: the asset has no partition"


def _takes_out_all(rule: PartitionByInterval) -> bool:
    """Whether no window is left; False as well where that would take many windows to know."""
    windows = rule.space.time
    ticks, first, stop = windows.ticks, windows.lowest, windows.highest
    if first is None:
        last = ticks.rank(_TODAY) if stop is None else stop
        first = ticks.rank(ticks.tick(last) - _YEARS * 366 * DAY)
    if stop is None:
        stop = ticks.rank(ticks.tick(first) + _YEARS * 366 * DAY)
    since, until = ticks.tick(first), ticks.tick(stop)
    crons = [_cron_ticks(rule, text) for text in rule.exclude if isinstance(text, str)]
    if max(each.rank(until) - each.rank(since) for each in [ticks, *crons]) > _MOST_TICKS_IN_ALL:
        return False
    starts = range(first, stop, _WINDOWS_AT_ONCE)
    return first < stop and not any(
        windows.count(start, min(start + _WINDOWS_AT_ONCE, stop)) for start in starts
    )


def _cron_ticks(rule: PartitionByInterval, text: str) -> Ticks:
    return place(read_cron(text), rule.zone, 0, elapsed=rule.follows_elapsed_time)


def _is_matched(rule: PartitionByInterval, excluded: Excluded) -> bool:
    ticks = rule.space.time.ticks
    if isinstance(excluded, str):
        start = to_instant(rule.start or datetime(2000, 1, 1, tzinfo=UTC))
        cron = _cron_ticks(rule, excluded)
        return _share_a_tick(ticks, cron, start)
    if isinstance(excluded, datetime):
        instant = to_instant(excluded)
        return ticks.tick(ticks.rank(instant)) == instant
    day = excluded.toordinal() - _EPOCH_DAY
    midnights = (rule.zone.first_instant((day + days) * DAY) for days in (0, 1))
    low, high = (ticks.rank(midnight) for midnight in midnights)
    return low < high


def _share_a_tick(windows: Ticks, cron: Ticks, since: int) -> bool:
    until = since + _YEARS * 366 * DAY
    counted = [(ticks.rank(until) - ticks.rank(since), ticks) for ticks in (windows, cron)]
    (count, fewer), (_, more) = sorted(counted, key=lambda pair: pair[0])
    low = fewer.rank(since)
    starts = fewer.ticks(low, low + min(count, _MOST_TICKS))
    return any(more.tick(more.rank(start)) == start for start in starts)

"""The partitions of assets that the present definition has: bounds, excluded windows, segments.

Rows of partitions that a definition has lost are kept. Counts leave such rows out by arithmetic on
buckets; rows are read only in buckets that a bound cuts, and in excluded windows.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from typing import NamedTuple

import slicewise
from assets_app.models import Asset
from slicewise.calendar import to_datetime
from slicewise.partitions import Windows, bucket_of, has_day_buckets

# Longer than any bucket.
_DAY_BUCKET, _MONTH_BUCKET = timedelta(days=2), timedelta(days=33)


class Bounds(NamedTuple):
    """The buckets in which an asset's definition has windows; None without a bound."""

    asset_id: int
    identity: str
    first: date | None
    last: date | None
    # The number of sequences that a segment combines.
    width: int


class ListedSegment(NamedTuple):
    """A text that the definition lists, and the number of the sequence, from 1 on."""

    asset_id: int
    position: int
    text: str


class WindowlessSpan(NamedTuple):
    """A span of time within an asset's buckets in which its definition has no window."""

    asset_id: int
    since: datetime
    until: datetime


def bounds_of(asset: Asset) -> Bounds:
    """Return the buckets that the asset's definition reaches over."""
    definition, first, last = asset.definition, None, None
    windows = _windows(definition)
    if definition is not None and windows is not None:
        if windows.lowest is not None:
            first = bucket_of(definition, windows.ticks.tick(windows.lowest))
        if windows.highest is not None:
            last = bucket_of(definition, windows.ticks.tick(windows.highest - 1))
    width = 0 if definition is None else len(definition.space.segments.lists)
    return Bounds(asset.pk, asset.identity, first, last, width)


def listed_segments(assets: Iterable[Asset]) -> Iterator[ListedSegment]:
    """Yield the texts that the definitions of the assets list."""
    for asset in assets:
        definition = asset.definition
        lists = () if definition is None else definition.space.segments.lists
        for position, listed in enumerate(lists, 1):
            for text in listed.positions_by_text:
                yield ListedSegment(asset.pk, position, text)


def windowless_spans_of(asset: Asset, first: date, last: date) -> Iterator[WindowlessSpan]:
    """Yield the spans without a window within the buckets that have counts: the time before and
    after the bounds in the same bucket, and excluded windows.
    """
    definition = asset.definition
    windows = _windows(definition)
    if definition is None or windows is None:
        return
    longest = _DAY_BUCKET if has_day_buckets(definition) else _MONTH_BUCKET
    tick = windows.ticks.tick
    if windows.lowest is not None:
        lowest = tick(windows.lowest)
        if _cuts_bucket(definition, lowest, first, last):
            start = to_datetime(lowest)
            yield WindowlessSpan(asset.pk, _before(start, longest), start)
    if windows.highest is not None:
        highest = tick(windows.highest)
        if _cuts_bucket(definition, highest, first, last):
            end = to_datetime(highest)
            yield WindowlessSpan(asset.pk, end, _after(end, longest))
    if windows.has_exclusions:
        since, until = (_second(day) for day in (first - longest, last + longest))
        numbers = windows.excluded(
            *windows.clip(windows.ticks.rank(since), windows.ticks.rank(until))
        )
        for low, high in _unbroken(numbers):
            yield WindowlessSpan(asset.pk, to_datetime(tick(low)), to_datetime(tick(high + 1)))


def span_of(asset: Asset) -> tuple[datetime | None, datetime | None]:
    """Return (start of the first window, end of the last window); each is None without a bound."""
    windows = _windows(asset.definition)
    if windows is None:
        return None, None
    tick, lowest, highest = windows.ticks.tick, windows.lowest, windows.highest
    # A definition that starts near the end of Python's calendar has its first window afterwards.
    return (
        None if lowest is None else to_datetime(min(tick(lowest), _second(date.max))),
        None if highest is None else to_datetime(tick(highest)),
    )


def _cuts_bucket(
    definition: slicewise.PartitionDefinition, bound: int, first: date, last: date
) -> bool:
    """Return whether a bound, in seconds of UTC, cuts one of the counted buckets."""
    try:
        bucket = bucket_of(definition, bound)
        is_within = first <= bucket <= last and bound <= _second(date.max)
        return is_within and bucket == bucket_of(definition, bound - 1)
    except OverflowError:  # Python's calendar begins or ends with the bound
        return False


def _windows(definition: slicewise.PartitionDefinition | None) -> Windows | None:
    return None if definition is None else definition.space.windows


def _before(moment: datetime, span: timedelta) -> datetime:
    """Return the moment so long before, within Python's calendar: a definition may begin with the
    calendar, and end with it where people write 9999 for "no end".
    """
    first = datetime.min.replace(tzinfo=UTC)
    return moment - span if moment - first > span else first


def _after(moment: datetime, span: timedelta) -> datetime:
    """Return the moment so long afterwards, within Python's calendar."""
    last = datetime.max.replace(tzinfo=UTC)
    return moment + span if last - moment > span else last


def _second(day: date) -> int:
    return (day.toordinal() - date(1970, 1, 1).toordinal()) * 86_400


def _unbroken(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of each unbroken range."""
    for _, pairs in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        members = [number for _, number in pairs]
        yield members[0], members[-1]

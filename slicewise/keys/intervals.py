"""Make windows of seconds, without the checks of `Interval`: a listing makes a million windows."""

from collections.abc import Iterable
from itertools import pairwise

from slicewise.calendar.zones import Zone
from slicewise.keys.partition_key import Interval


def make_interval(first_second: int, stop_second: int, zone: Zone) -> Interval:
    """Return the window between two instants, without a check of the order."""
    interval = Interval.__new__(Interval)
    interval._first_second = first_second
    interval._stop_second = stop_second
    interval._zone = zone
    return interval


def make_intervals(ticks: Iterable[int], zone: Zone) -> list[Interval]:
    """Return the windows between consecutive ticks. Calls of `make_interval` would double the
    time.
    """
    new = Interval.__new__
    intervals: list[Interval] = []
    add = intervals.append
    for start, stop in pairwise(ticks):
        interval = new(Interval)
        interval._first_second = start
        interval._stop_second = stop
        interval._zone = zone
        add(interval)
    return intervals

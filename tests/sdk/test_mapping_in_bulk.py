"""Whole sets are mapped by their ranges: the tests count the windows looked at, and measure no
time.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import pytest

from slicewise import (
    Latest,
    Offset,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    PartitionMapping,
    PartitionSet,
    downstream_partitions,
    upstream_partitions,
)
from slicewise.calendar.ticks import Ticks
from tests.sdk.installed_plugins import PACKAGE

sys.path.insert(0, str(PACKAGE / "src"))
Lookback: Any = import_module("slicewise_retail").Lookback
sys.path.remove(str(PACKAGE / "src"))

ZONE = "Europe/Berlin"


class CountingTicks:
    """Ticks that count how many ticks were looked at."""

    def __init__(self, ticks: Ticks) -> None:
        self._ticks, self.seen = ticks, 0

    def rank(self, instant: int) -> int:
        self.seen += 1
        return self._ticks.rank(instant)

    def tick(self, number: int) -> int:
        self.seen += 1
        return self._ticks.tick(number)

    def ticks(self, first: int, stop: int) -> Sequence[int]:
        self.seen += max(0, stop - first)
        return self._ticks.ticks(first, stop)

    def number_of(self, start: int, stop: int) -> int | None:
        self.seen += 1
        return self._ticks.number_of(start, stop)

    def ranks(self, instants: Sequence[int]) -> Sequence[int]:
        self.seen += len(instants)
        return self._ticks.ranks(instants)

    def at(self, numbers: Sequence[int]) -> Sequence[int]:
        self.seen += len(numbers)
        return self._ticks.at(numbers)


def _counted(cadence: str, **bounds: Any) -> tuple[PartitionByInterval, CountingTicks]:
    definition = PartitionByInterval(cadence, timezone=ZONE, **bounds)
    ticks = CountingTicks(definition.space.time.ticks)
    definition.space.time.ticks = ticks
    return definition, ticks


@pytest.mark.parametrize(
    ("mapping", "most"), [(None, 50), (Offset(-6, 0), 50), (Latest(), 50), (Lookback(7), 2000)]
)
def test_a_year_of_minutes_is_mapped_to_days_by_looking_at_few(
    mapping: PartitionMapping | None, most: int
) -> None:
    minutes, minute_ticks = _counted("* * * * *")
    days, day_ticks = _counted("@daily", end="2025-01-02")
    chosen = minutes.select("2024")
    minute_ticks.seen = day_ticks.seen = 0
    needed = upstream_partitions(minutes, days, chosen, mapping)
    assert len(chosen) == 366 * 1440
    assert len(needed.window_ranges) == 1
    assert minute_ticks.seen + day_ticks.seen < most


@pytest.mark.parametrize("mapping", [None, Offset(-6, 0), Lookback(7)])
def test_a_year_of_days_is_mapped_to_minutes_by_looking_at_few(
    mapping: PartitionMapping | None,
) -> None:
    minutes, minute_ticks = _counted("* * * * *")
    days, day_ticks = _counted("@daily")
    chosen = days.select("2024")
    minute_ticks.seen = day_ticks.seen = 0
    due = downstream_partitions(days, minutes, chosen, mapping)
    assert len(due) >= 366 * 1440
    assert len(due.window_ranges) == 1
    assert minute_ticks.seen + day_ticks.seen < 50


def test_scattered_minutes_of_a_year_are_mapped_by_their_days() -> None:
    minutes, minute_ticks = _counted("* * * * *")
    days, day_ticks = _counted("@daily")
    every = minutes.select("2024")
    first, stop = every.window_ranges[0].first, every.window_ranges[0].stop
    odd = PartitionSet(minutes, [(every.window_ranges[0]._replace(first=n, stop=n + 1))
                                 for n in range(first, stop, 7)])  # fmt: skip
    minute_ticks.seen = day_ticks.seen = 0
    needed = upstream_partitions(minutes, days, odd)
    assert (len(needed), len(needed.window_ranges)) == (366, 1)
    assert minute_ticks.seen + day_ticks.seen < 2000


def test_products_are_mapped_by_ranges_too() -> None:
    minutes, minute_ticks = _counted("* * * * *")
    days, day_ticks = _counted("@daily")
    shops = PartitionBySequence(range(100))
    downstream = PartitionByProduct({"minute": minutes, "shop": shops})
    upstream = PartitionByProduct(
        {"day": days, "shop": shops, "kind": PartitionBySequence(["ab", "x"])}
    )
    chosen = downstream.select("minute=2024 shop=10..19")
    minute_ticks.seen = day_ticks.seen = 0
    needed = upstream_partitions(downstream, upstream, chosen)
    assert (len(needed), len(needed.window_ranges)) == (366 * 10 * 2, 1)
    assert minute_ticks.seen + day_ticks.seen < 50

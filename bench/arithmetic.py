"""Rows 11 to 13: partition arithmetic, each figure the first call in a fresh process."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter
from typing import Any

from bench.figures import Figure, duration

ZONE = "America/New_York"
CRONITER_TICKS = 20_000
THOUSAND = 1_000


def measure(times: int) -> Iterator[Figure]:
    """Measure each case ``times`` times, each time in a new process.

    The definition exists before the measurement; cached values do not, except the zone of a
    definition with bounds.
    """
    for row, work, case, reach in (
        (11, "list 527,040 minute windows", minute_windows, 0.3),
        (11, "list 525,888 five-minute windows", five_minute_windows, 0.3),
        (12, "count 10 years of 0 */2 * * *", count_ten_years, 1e-3),
        (12, "the window of an instant", window_of_an_instant, 1e-3),
        (12, "one partition out of a million", one_out_of_a_million, 1e-3),
        (13, "map a set of 43,824 fragments hourly to daily", map_fragments, 50e-3),
        (13, "one membership test in such a set, the very first", membership, 10e-6),
        (13, "one of the first 1,000 tests", thousand_memberships, 10e-6),
    ):
        yield _figure(row, work, case, reach, times)


def _figure(row: int, work: str, case: "Case", reach: float, times: int) -> Figure:
    taken = median(_in_fresh_process(case) for _ in range(times))
    if case is thousand_memberships:
        taken /= THOUSAND
    bare = ticks = None
    if row == 11:
        ticks = int(work.split()[1].replace(",", ""))
        walked = median(_in_fresh_process(_WALKS[case]) for _ in range(times))
        bare = walked / CRONITER_TICKS * ticks
    return Figure(
        row=row,
        work=work,
        measured=duration(taken),
        seconds=taken,
        bare="" if bare is None else f"croniter walks them in {duration(bare)}",
        ratio=None if bare is None else taken / bare,
        reach=duration(reach),
        reached=taken <= reach,
        times=times,
    )


def _in_fresh_process(case: "Case") -> float:
    done = subprocess.run(
        [sys.executable, "-m", "bench.arithmetic", case.__name__],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(done.stdout)


Case = Callable[[], Callable[[], object]]
"""Prepares, and returns what is to be measured: called once, in a process of its own."""


def _definition(schedule: str, start: str, end: str) -> Any:
    from slicewise import PartitionByInterval

    return PartitionByInterval(schedule, timezone=ZONE, start=start, end=end)


def minute_windows() -> Callable[[], object]:
    """Iterate over all minutes of a leap year."""
    definition = _definition("* * * * *", "2020-01-01", "2021-01-01")
    return lambda: _expect(527_040, list(definition.keys()))


def five_minute_windows() -> Callable[[], object]:
    """Iterate over all steps of five minutes of five years."""
    definition = _definition("*/5 * * * *", "2013-01-01", "2018-01-01")
    return lambda: _expect(525_888, list(definition.keys()))


def count_ten_years() -> Callable[[], object]:
    """Count the two-hour windows of ten years."""
    definition = _definition("0 */2 * * *", "2013-01-01", "2023-01-01")
    return lambda: _expect(43_824, range(definition.count()))


def window_of_an_instant() -> Callable[[], object]:
    """Find the two-hour window of an instant."""
    from datetime import UTC, datetime

    definition = _definition("0 */2 * * *", "2013-01-01", "2023-01-01")
    instant = datetime(2017, 7, 8, 9, 10, tzinfo=UTC)
    return lambda: definition.window_at(instant)


def one_out_of_a_million() -> Callable[[], object]:
    """Find one key in the middle of a million."""
    definition = _definition("* * * * *", "2020-01-01", "2022-01-01")
    return lambda: definition.keys()[654_321]


def map_fragments() -> Callable[[], object]:
    """Map every other hour of ten years to days."""
    import slicewise

    hours, days, fragments = _fragments()
    return lambda: slicewise.downstream_partitions(hours, days, fragments)


def membership() -> Callable[[], object]:
    """Look for an hour among every other hour of ten years."""
    hours, _, fragments = _fragments()
    key = hours.keys()[50_000]
    return lambda: key in fragments


def thousand_memberships() -> Callable[[], object]:
    """Look for 1,000 different hours among every other hour of ten years."""
    hours, _, fragments = _fragments()
    keys = list(hours.keys())[::87][:THOUSAND]
    return lambda: _expect(THOUSAND // 2, [key for key in keys if key in fragments])


def _fragments() -> tuple[Any, Any, Any]:
    from slicewise import PartitionSet

    hours = _definition("@hourly", "2013-01-01", "2023-01-01")
    days = _definition("@daily", "2013-01-01", "2023-01-01")
    fragments = PartitionSet.of(hours, list(hours.keys())[::2])
    _expect(43_824, fragments)
    return hours, days, fragments


def walk_minutes() -> Callable[[], object]:
    """Iterate over minutes with croniter."""
    return _walk("* * * * *")


def walk_five_minutes() -> Callable[[], object]:
    """Iterate over steps of five minutes with croniter."""
    return _walk("*/5 * * * *")


def _walk(expression: str) -> Callable[[], object]:
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from croniter import croniter

    walk = croniter(expression, datetime(2020, 1, 1, tzinfo=ZoneInfo(ZONE)))
    return lambda: [walk.get_next(datetime) for _ in range(CRONITER_TICKS)]


_WALKS: dict[Case, Case] = {
    minute_windows: walk_minutes,
    five_minute_windows: walk_five_minutes,
}


def _expect(count: int, found: Any) -> None:
    if len(found) != count:
        raise ValueError(f"{len(found)} where {count} were expected")


def main(case: str) -> None:
    """Measure one case, and print the seconds."""
    work = globals()[case]()
    began = perf_counter()
    work()
    print(perf_counter() - began)


if __name__ == "__main__":
    main(sys.argv[1])

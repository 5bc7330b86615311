"""Row 4: trivial runs, each in a process of its own, from the request by the API to the record."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from statistics import median

from bench.figures import Figure
from bench.history import remember
from bench.running import BUNDLES, backfill, data_folder, sign_in, with_lake
from slicewise_server.stack.stack import Stack

_SLOTS = 4
_FIRST = datetime(2024, 1, 1)


def measure(times: int, runs: int, history: int) -> Iterator[Figure]:
    """So many runs, some times over; and again with so many materializations on record, if any.

    The ratio is that of the times after to those before.
    """
    with data_folder() as folder:
        bundles = {"trivial": BUNDLES / "trivial"}
        whole = Stack(folder, bundles=bundles, env=with_lake(folder), slots=_SLOTS)
        whole.start()
        try:
            _some(whole, 2 * _SLOTS)  # the first forks of a parent are slower
            before = [_some(whole, runs) for _ in range(times)]
            yield _figure(runs, before, "an empty record")
            if history:
                remember(whole.environment(), history)
                after = [_some(whole, runs) for _ in range(times)]
                ratio = median(after) / median(before)
                yield _figure(runs, after, f"{history:,} materializations on record", ratio)
        finally:
            whole.stop()


def _some(whole: Stack, runs: int) -> float:
    last = _FIRST + timedelta(minutes=runs - 1)
    took = backfill(
        sign_in(whole),
        "trivial",
        f"{_FIRST:%Y-%m-%dT%H:%MZ}",
        f"{last:%Y-%m-%dT%H:%MZ}",
        max_active_runs=10 * _SLOTS,
    )
    there = len(list((whole.data / "lake" / "trivial").iterdir()))
    if there < runs:
        raise ValueError(f"{there} files of {runs}")
    return took


def _figure(runs: int, took: list[float], record: str, ratio: float | None = None) -> Figure:
    middle = median(took)
    return Figure(
        row=4,
        work=f"{runs:,} trivial runs, each in a process of its own, {record}",
        measured=f"{runs / middle:,.1f}/s",
        seconds=middle,
        bare="" if ratio is None else "an empty record",
        ratio=ratio,
        reach="100/s",
        reached=runs / middle >= 100,
        times=len(took),
    )

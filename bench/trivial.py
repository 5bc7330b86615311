"""Row 4: trivial runs, each in a separate process, from the request by the API to the record."""

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
    """Measure so many runs, some times over; repeat with materializations on record, if any.

    The ratio divides the times after by the times before.
    """
    with data_folder() as folder:
        bundles = {"trivial": BUNDLES / "trivial"}
        whole = Stack(folder, bundles=bundles, env=with_lake(folder), slots=_SLOTS)
        whole.start()
        try:
            timed_runs(whole, 2 * _SLOTS)  # the first forks of a parent are slower
            before = [timed_runs(whole, runs) for _ in range(times)]
            yield _figure(runs, before, "an empty record")
            if history:
                remember(whole.environment(), history)
                after = [timed_runs(whole, runs) for _ in range(times)]
                ratio = median(after) / median(before)
                yield _figure(runs, after, f"{history:,} materializations on record", ratio)
        finally:
            whole.stop()


def timed_runs(whole: Stack, runs: int) -> float:
    """Return the seconds of so many runs. Raises ValueError if files of runs are missing."""
    last = _FIRST + timedelta(minutes=runs - 1)
    took = backfill(
        sign_in(whole),
        "trivial",
        f"{_FIRST:%Y-%m-%dT%H:%MZ}",
        f"{last:%Y-%m-%dT%H:%MZ}",
        max_active_runs=10 * _SLOTS,
    )
    file_count = len(list((whole.data / "lake" / "trivial").iterdir()))
    if file_count < runs:
        raise ValueError(f"{file_count} files of {runs}")
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

"""Rows 6, 7 and 18: the flights example on a whole stack, beside the same work done bare."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta

from bench.figures import Figure, Pair, duration, in_turns, medians
from bench.running import Bare, WorkFailedError, backfill, data_folder, sign_in, stack, wait_for
from slicewise_server.stack.demo.client import Client
from slicewise_server.stack.stack import Stack

YEAR = ("2013-01-01", "2013-12-31")
AT_ONCE = 3
_LOOK_SECONDS = 0.1
_PATIENCE_SECONDS = 300


def measure(times: int, days: int) -> Iterator[Figure]:
    """Start a stack and measure; each turn of row 6 materializes ``days`` days."""
    with data_folder() as folder, stack(folder) as whole:
        yield first_partition(whole)
        client = sign_in(whole)
        with bare_beside(whole) as bare:
            yield isolated_runs(client, bare, times, days)
            yield range_run(client, bare, times)


@contextmanager
def bare_beside(whole: Stack) -> Iterator[Bare]:
    """Enter the process of the bare work, and end the process afterwards."""
    bare = Bare(whole)
    try:
        yield bare
    finally:
        bare.close()


def first_partition(whole: Stack) -> Figure:
    """Measure row 18: start everything, request the demo's first layer, wait for the first run."""
    began = time.monotonic()
    whole.start()
    client = sign_in(whole)
    started = time.monotonic() - began
    asked = [
        client.post("/backfills/", asset=asset, start=YEAR[0], end=YEAR[1])
        for asset in ("raw_flights", "weather")
    ]
    client.post("/assets/carriers/materialize/")
    while not client.get("/runs/?state=succeeded")["results"]:
        if time.monotonic() - began > _PATIENCE_SECONDS:
            raise WorkFailedError("no run succeeded")
        time.sleep(_LOOK_SECONDS)
    took = time.monotonic() - began
    for each in asked:
        wait_for(client, each)
    return Figure(
        row=18,
        work="from the start of everything, installed, to the first materialized partition",
        measured=f"{duration(took)}, of which {duration(started)} until it could be used",
        seconds=took,
        reach="45 s",
        reached=took <= 45,
    )


def isolated_runs(client: Client, bare: Bare, times: int, days: int) -> Figure:
    """Measure row 6: a run for each day, through API, rows, Celery, runner, publication, record."""
    first = date(2013, 3, 1)
    each = [(first + timedelta(days=number)).isoformat() for number in range(days)]
    pairs = in_turns(
        lambda: backfill(
            client, "daily_delays", each[0], each[-1], max_active_runs=AT_ONCE, strategy="partition"
        ),
        lambda: bare.do("each day", days=each, at_once=AT_ONCE),
        times,
        warm_up=True,
    )
    work = (
        f"one day of flights aggregated by Spark, a run per day, {AT_ONCE} at a time, {days} days"
    )
    return _beside_bare(6, work, pairs, 1.5, "the bare forked figure of the same run", days)


def range_run(client: Client, bare: Bare, times: int) -> Figure:
    """Measure row 7: all days in one run, beside one job that writes the same folders."""
    pairs = in_turns(
        lambda: backfill(client, "delays_by_day", *YEAR, strategy="range"),
        lambda: bare.do("all days"),
        times,
        warm_up=True,
    )
    return _beside_bare(7, "the same for 365 days in one range run", pairs, 1.2, "the bare job")


def _beside_bare(
    row: int, work: str, pairs: list[Pair], reach: float, of: str, share: int = 1
) -> Figure:
    middle, ratio = medians(pairs)
    each = " each" if share > 1 else ""
    return Figure(
        row=row,
        work=work,
        measured=duration(middle.ours / share) + each,
        seconds=middle.ours / share,
        bare=duration(middle.bare / share) + each,
        ratio=ratio,
        reach=f"{reach} x {of}",
        reached=ratio <= reach,
        times=len(pairs),
    )

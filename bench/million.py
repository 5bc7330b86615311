"""``python -m bench.million``: a backfill of a million partitions from preview to cancellation.

The backfill is previewed, created, read while running, controlled while runs are claimed and
recorded, paused, changed, resumed and canceled. Measured are the time of each request, the waits
of scheduled runs of the same asset, and the memory of each process except Spark. With
``--run-size 50000`` each claim and each record is of 50,000 partitions.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.backfills import waits
from bench.figures import duration
from bench.memory import Memory
from bench.running import BUNDLES, data_folder, sign_in
from slicewise_server.stack.process import scrubbed
from slicewise_server.stack.stack import Stack
from tests.faults.page_visits import Pages

ASSET = "pulse"
_FIRST = datetime(2020, 1, 1, tzinfo=UTC)
_LOOKS = 21
_ROUNDS = 8
_WAITS_SECONDS = 30
_PATIENCE_SECONDS = 600
_MOST_MB = 500

console = Console(highlight=False)


def main() -> int:
    """Measure the life of the backfill; return exit status 1 if memory exceeded the limit."""
    parser = argparse.ArgumentParser(prog="python -m bench.million", description=__doc__)
    parser.add_argument(
        "--partitions", type=int, default=1_000_000, help="partitions of the backfill"
    )
    parser.add_argument("--run-size", type=int, default=1, help="partitions of a run")
    parser.add_argument("--seconds", type=int, default=60, help="seconds before the pause")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with data_folder() as folder:
        whole = Stack(folder, bundles={"beat": BUNDLES / "beat"}, env=scrubbed(os.environ))
        whole.start()
        try:
            with Memory() as memory:
                Life(whole, options.partitions, options.seconds, options.run_size).live()
            memory_table = Table(title="The most that a process had to itself, Spark's left out")
            memory_table.add_column("process")
            memory_table.add_column("MB", justify="right")
            for kind, size in memory.most.items():
                memory_table.add_row(kind, f"{size:,}")
            console.print(memory_table)
        finally:
            whole.stop()
    return 0 if max(memory.most.values()) < _MOST_MB else 1


class Life:
    """One backfill, and the time of each request."""

    def __init__(self, whole: Stack, partitions: int, seconds: int, run_size: int) -> None:
        self._whole, self._client = whole, sign_in(whole)
        self._pages = Pages(whole)
        last = _FIRST + timedelta(seconds=partitions - 1)
        self._asked = {
            "asset": ASSET,
            "start": f"{_FIRST:%Y-%m-%dT%H:%M:%SZ}",
            "end": f"{last:%Y-%m-%dT%H:%M:%SZ}",
            "max_active_runs": 3,
            "strategy": "partition" if run_size == 1 else run_size,
        }
        self._partitions, self._seconds = partitions, seconds
        self._address = ""

    def live(self) -> None:
        """Send all requests in order."""
        client = self._client
        for name in ("echo", "bars"):
            client.post(f"/assets/{name}/pause/")
        self._waits("nothing")
        plan = self._timed("preview", lambda: client.post("/backfills/preview/", **self._asked))
        self._timed("preview, again", lambda: client.post("/backfills/preview/", **self._asked))
        made = self._timed("create: accepted", lambda: client.post("/backfills/", **self._asked))
        if made["counts"]["total"] != self._partitions:
            raise ValueError(f"{made['counts']} of {self._partitions:,}; announced: {plan}")
        began = time.monotonic()
        self._address = f"/backfills/{made['id']}/"
        self._look("while it is created", 5)
        self._until(lambda now: now["state"] == "running")
        _say("create: every partition is a row", time.monotonic() - began)
        running_since = time.monotonic()
        before = client.get(self._address)["counts"]["succeeded"]
        self._waits("a backfill of it that runs")
        self._look("while it runs", _LOOKS)
        time.sleep(max(0.0, self._seconds - (time.monotonic() - running_since)))
        counts = client.get(self._address)["counts"]
        rate = (counts["succeeded"] - before) / (time.monotonic() - running_since)
        console.print(f"  made meanwhile: {counts['succeeded']:,} ({rate:.1f}/s)")
        self._steer()
        self._timed("pause", lambda: client.post(self._address + "pause/"))
        self._until(lambda now: not now["counts"]["active"])
        quiet = client.get(self._address)["counts"]["succeeded"]
        time.sleep(3)
        now = client.get(self._address)
        if (now["state"], now["counts"]["succeeded"]) != ("paused", quiet):
            raise ValueError(f"paused, and something was made: {now}")
        self._look("while it is paused", _LOOKS)
        self._timed(
            "change order, priority and runs at once",
            lambda: client.patch(self._address, order="newest", priority=2, max_active_runs=2),
        )
        self._timed("resume", lambda: client.post(self._address + "resume/"))
        self._until(lambda now: now["counts"]["succeeded"] > quiet)
        asked = time.monotonic()
        self._timed("cancel: accepted", lambda: client.post(self._address + "cancel/"))
        self._look("while it is canceled", 5)
        self._until(lambda now: now["state"] == "canceled")
        _say("cancel: nothing runs, all is canceled", time.monotonic() - asked)
        self._look("after its end", _LOOKS)
        counts = client.get(self._address)["counts"]
        console.print(f"  {counts}")
        made_ones = client.every(self._address + "partitions/?state=succeeded&page_size=1000")
        console.print(f"  the newest that was made: {max(one['start'] for one in made_ones)}")
        if counts["succeeded"] + counts["canceled"] != self._partitions:
            raise ValueError(f"some partitions are neither made nor canceled: {counts}")

    def _steer(self) -> None:
        """Measure requests while runs are claimed and recorded, with progress in between."""
        asks: dict[str, Callable[[], Any]] = {
            "pause": lambda: self._client.post(self._address + "pause/"),
            "change order": lambda: self._client.patch(self._address, order="newest"),
            "change order back": lambda: self._client.patch(self._address, order="oldest"),
            "resume": lambda: self._client.post(self._address + "resume/"),
            "read": lambda: self._client.get(self._address),
        }
        took: dict[str, list[float]] = {what: [] for what in asks}
        for number in range(_ROUNDS):
            for what, ask in asks.items():
                began = time.monotonic()
                ask()
                took[what].append(time.monotonic() - began)
            time.sleep(1 + 0.7 * number)
        for what, times in took.items():
            console.print(
                f"  {what} while runs are claimed and recorded: median"
                f" {duration(median(times))}, worst {duration(max(times))}"
            )

    def _waits(self, beside: str) -> None:
        """Measure the waits of scheduled runs, one a second, from the due instant to the start."""
        number, middle, worst = waits(self._whole, _WAITS_SECONDS)
        console.print(f"scheduled runs beside {beside}: {number}, median {middle}, worst {worst}")

    def _look(self, when: str, times: int) -> None:
        """Measure the page of the backfill and the requests that the page repeats."""
        for name, path in (("page", ""), ("progress", "progress/")):
            took = []
            for _ in range(times):
                began = time.monotonic()
                self._pages.text(self._address + path)
                took.append(time.monotonic() - began)
            console.print(
                f"  {name} {when}: median {duration(median(took))}, worst {duration(max(took))}"
            )

    def _timed(self, what: str, act: Callable[[], Any]) -> Any:
        began = time.monotonic()
        answer = act()
        _say(what, time.monotonic() - began)
        return answer

    def _until(self, so: Callable[[dict[str, Any]], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not so(now := self._client.get(self._address)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not after {_PATIENCE_SECONDS} s: {now}")
            time.sleep(0.1)


def _say(what: str, seconds: float) -> None:
    console.print(f"{what}: {duration(seconds)}")


if __name__ == "__main__":
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    sys.exit(main())

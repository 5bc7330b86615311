"""Row 17: list pages of the API, asked for by many at once."""

import itertools
import os
import threading
import time
from collections.abc import Iterator
from statistics import median, quantiles

from bench.figures import Figure, duration
from bench.running import BUNDLES, backfill, data_folder, sign_in
from config.demo.client import Client
from config.stack import Stack
from config.stack.process import scrubbed

_CLIENTS, _SECONDS, _WARM_UP_SECONDS = 50, 30, 5
_WORKERS = 2
_RUNS = "2024-01-01T00:00Z", "2024-01-01T04:59Z"
_LISTS = (
    "/assets/",
    "/runs/",
    "/runs/?state=succeeded",
    "/backfills/",
    "/gateways/",
    "/assets/trivial/partitions/",
    "/assets/trivial/ticks/",
)


def measure() -> Iterator[Figure]:
    """Fifty clients, each of which asks once a second, on a stack with some hundred runs."""
    with data_folder() as folder:
        env = {
            **scrubbed(os.environ),
            "LAKE": str(folder / "lake"),
            "SLICEWISE_RUNNER_ENV": "LAKE",
            "GRANIAN_WORKERS": str(_WORKERS),
        }
        whole = Stack(folder, bundles={"trivial": BUNDLES / "trivial"}, env=env)
        whole.start()
        try:
            client = sign_in(whole)
            backfill(client, "trivial", *_RUNS, max_active_runs=8)
            yield _figure(Crowd(client).asks())
        finally:
            whole.stop()


class Crowd:
    """Threads that ask for one list after the other, each at its own moment of the second."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._began = time.monotonic()
        self._took: list[float] = []

    def asks(self) -> list[float]:
        """The seconds that each answer took. Raises ApiError for an answer that is none."""
        failed: list[BaseException] = []

        def ask(number: int) -> None:
            try:
                self._ask(number)
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=ask, args=[n]) for n in range(_CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failed:
            raise failed[0]
        return self._took

    def _ask(self, number: int) -> None:
        for second, path in enumerate(itertools.islice(itertools.cycle(_LISTS), number, None)):
            moment = self._began + second + number / _CLIENTS
            if moment >= self._began + _WARM_UP_SECONDS + _SECONDS:
                return
            time.sleep(max(0.0, moment - time.monotonic()))
            self._client.get(path)
            if second >= _WARM_UP_SECONDS:
                # From when it was due: who waits for an answer asks no other meanwhile.
                self._took.append(time.monotonic() - moment)


def _figure(took: list[float]) -> Figure:
    worst = quantiles(took, n=100)[-1]
    return Figure(
        row=17,
        work=f"list pages of the API, {_CLIENTS} clients at one a second each,"
        f" {_WORKERS} web processes",
        measured=f"p99 {duration(worst)}, median {duration(median(took))}, no error",
        seconds=worst,
        reach="p99 200 ms, no error",
        reached=worst <= 0.2,
        times=len(took),
    )

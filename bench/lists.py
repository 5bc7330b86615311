"""Row 17: list pages of the API, with many clients at once."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import median, quantiles

from bench.figures import Figure, duration
from bench.running import BUNDLES, backfill, data_folder, sign_in, with_lake
from slicewise_server.stack.demo.client import Client
from slicewise_server.stack.stack import Stack

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
    """Measure fifty clients with one request a second each, on a stack with some hundred runs."""
    with data_folder() as folder:
        env = {**with_lake(folder), "GRANIAN_WORKERS": str(_WORKERS)}
        whole = Stack(folder, bundles={"trivial": BUNDLES / "trivial"}, env=env)
        whole.start()
        try:
            client = sign_in(whole)
            backfill(client, "trivial", *_RUNS, max_active_runs=8)
            yield _figure(_waits(client))
        finally:
            whole.stop()


def _waits(client: Client) -> list[float]:
    """Return the seconds of each answer. Raises ApiError for an error of the API."""
    began = time.monotonic()

    def ask(number: int) -> list[float]:
        """Request one list after the other, each client at another moment of the second."""
        took = []
        for second in range(_WARM_UP_SECONDS + _SECONDS):
            # From the due moment: a client that waits for an answer sends no other request.
            due = began + second + number / _CLIENTS
            time.sleep(max(0.0, due - time.monotonic()))
            client.get(_LISTS[(number + second) % len(_LISTS)])
            took.append(time.monotonic() - due)
        return took[_WARM_UP_SECONDS:]

    with ThreadPoolExecutor(_CLIENTS) as pool:
        return [each for waits in pool.map(ask, range(_CLIENTS)) for each in waits]


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

"""``python -m bench.connected``: the cost of lineage, alerts, metrics, traces and lateness.

The same work is measured with all five switched off and on, in turns: rows 4, 8 and 9, a tick
of 10,000 assets, and a dispatch. Each turn is a separate process, on a new database.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median
from typing import Any

from bench import layers, trivial
from bench.figures import duration
from bench.running import BUNDLES, data_folder, sign_in, with_lake
from bench.served import prepared_database
from slicewise_server.stack.stack import Stack

_QUEUED_RUNS = 200_000
_LOOKS = 15
_TICKS = 5
_SCRAPE_SECONDS = 1.0
_HOOK = "/hook"
# Events of lineage, spans, and messages of alerts.
_PATHS = {"/api/v1/lineage", "/v1/traces", _HOOK}


def main() -> None:
    """Measure in turns, and print medians and the medians of the ratios."""
    parser = argparse.ArgumentParser(prog="python -m bench.connected", description=__doc__)
    parser.add_argument("--pairs", type=int, default=4, help="turns of each kind")
    parser.add_argument("--runs", type=int, default=500, help="trivial runs in each turn")
    parser.add_argument("--turn", choices=("off", "on"), help="one turn alone, printed as JSON")
    options = parser.parse_args()
    if options.turn:
        print(json.dumps(_measured(options.runs, is_on=options.turn == "on")))
        return
    pairs = []
    for number in range(options.pairs):
        # Each kind is first in every other pair.
        kinds = ("off", "on") if number % 2 == 0 else ("on", "off")
        pair = {kind: _turn(kind, options.runs) for kind in kinds}
        pairs.append(pair)
        for work in pair["off"]:
            _print(f"pair {number + 1}, {work}", [pair], work)
    for work in pairs[0]["off"]:
        _print(f"median of {len(pairs)}, {work}", pairs, work)
    print(f"load of the machine now: {os.getloadavg()[0]:.1f}")


def _print(title: str, pairs: list[dict[str, dict[str, float]]], work: str) -> None:
    off, on = (median(pair[kind][work] for pair in pairs) for kind in ("off", "on"))
    ratio = median(pair["on"][work] / pair["off"][work] for pair in pairs)
    print(f"{title}: off {duration(off)}, on {duration(on)}, {ratio:.3f} x", flush=True)


def _turn(kind: str, runs: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.connected", "--turn", kind, "--runs", str(runs)]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
    return figures


def _measured(runs: int, *, is_on: bool) -> dict[str, float]:
    received: set[str] = set()
    with _receiver(received) as address:
        settings = {
            "CONNECTED": "1",
            "OPENLINEAGE_URL": address,
            "OTEL_EXPORTER_OTLP_ENDPOINT": address,
            "ALERT_ALLOWED_NETWORKS": "127.0.0.1",
            "LOG_JSON": "true",
        }
        env = settings if is_on else {}
        figures = _on_a_stack(runs, env, address if is_on else "") | _in_a_database(env)
    if received != (_PATHS if is_on else set()):
        raise ValueError(f"the receiver got {received}: there is nothing to compare")
    return figures


@contextmanager
def _receiver(received: set[str]) -> Iterator[str]:
    """Take events, messages and spans, and keep the paths of the requests alone."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            received.add(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


def _on_a_stack(runs: int, settings: dict[str, str], receiver: str) -> dict[str, float]:
    """Measure rows 4, 8 and 9 on a whole stack, connected to the receiver if there is one."""
    with data_folder() as folder:
        bundles = {name: BUNDLES / name for name in ("trivial", "beat")}
        env = with_lake(folder) | settings | {"SLICEWISE_RUNNER_ENV": "LAKE,CONNECTED"}
        whole = Stack(folder, bundles=bundles, env=env, slots=4)
        try:
            whole.start()
            with _connected(whole, receiver):
                trivial.timed_runs(whole, 20)  # the first forks of a parent are slower
                took = trivial.timed_runs(whole, runs)
                layers.wait_for_calm(whole)
                due, next_layer = layers.waits_by_row(whole)
        finally:
            whole.stop()
    return {
        "row 4, a trivial run": took / runs,
        "row 8, from due to running": median(due),
        "row 9, the next layer": median(next_layer),
    }


@contextmanager
def _connected(whole: Stack, receiver: str) -> Iterator[None]:
    """Create a channel and a rule for all events, and scrape the metrics each second."""
    if not receiver:
        yield
        return
    client = sign_in(whole)
    client.post("/channels/", name="connected", kind="webhook", address=receiver + _HOOK)
    client.post("/alert-rules/", name="all", channel="connected", backfill_runs=True)
    may_end = threading.Event()

    def scrape() -> None:
        while not may_end.wait(_SCRAPE_SECONDS):
            with suppress(OSError), urllib.request.urlopen(f"{whole.web_url}/metrics") as answer:
                answer.read()

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield
    finally:
        may_end.set()
        thread.join()


def _in_a_database(env: dict[str, str]) -> dict[str, float]:
    """Measure ticks and dispatches in this process."""
    with prepared_database(SLICEWISE_BUNDLES=f"bench={BUNDLES / 'minutes'}", **env):
        return _ticks_and_dispatches(has_freshness=bool(env))


def _ticks_and_dispatches(*, has_freshness: bool) -> dict[str, float]:
    # Models can be imported only now: Django reads settings from the environment.
    from assets_app.models import Asset
    from bench import dispatching, overdue, ticks

    ticks.declare()
    if has_freshness:
        overdue.declare()
    figures = [list(ticks.measure("", turn)) for turn in range(_TICKS)]
    asset_ids = list(Asset.objects.filter(bundle__name="many").values_list("id", flat=True))
    dispatching.fill(asset_ids, _QUEUED_RUNS // len(asset_ids))
    dispatching.timed_dispatch()
    return {
        "a tick, none due": median(none_due.seconds for none_due, _ in figures),
        "a tick, 10,000 due": median(all_due.seconds for _, all_due in figures),
        "a dispatch of 10 runs": median(dispatching.timed_dispatch() for _ in range(_LOOKS)),
    }


if __name__ == "__main__":
    main()

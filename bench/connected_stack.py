"""A stack with lineage, alerts, metrics, traces and lateness, or some of these, switched on."""

import asyncio
import re
import threading
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import NamedTuple

from bench.running import BUNDLES, data_folder, sign_in, with_lake
from slicewise_server.stack.stack import Stack

# As the guide of metrics and Prometheus' own documentation scrape.
_SCRAPE_SECONDS = 15.0
_HOOK = "/hook"
_CONTENT_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
# The parts that a trivial run meets, each with the path at which the receiver hears of the part.
PARTS = {"lineage": "/api/v1/lineage", "traces": "/v1/traces", "alerts": _HOOK, "metrics": ""}
ALL_PARTS = frozenset(PARTS)


class Switched(NamedTuple):
    """The parts that are switched on, the settings for that, and the receiver's address."""

    parts: frozenset[str]
    settings: dict[str, str]
    address: str


@contextmanager
def switched_on(parts: frozenset[str]) -> Iterator[Switched]:
    """Start a receiver of the requests of these parts.

    Raises ValueError at the end if the receiver did not hear of one of the parts.
    """
    received: set[str] = set()
    with _receiver(received) as address:
        settings = {
            "lineage": {"OPENLINEAGE_URL": address},
            "traces": {"OTEL_EXPORTER_OTLP_ENDPOINT": address},
            "alerts": {"ALERT_ALLOWED_NETWORKS": "127.0.0.1"},
        }
        env = {name: value for part in parts for name, value in settings.get(part, {}).items()}
        if parts == ALL_PARTS:
            env |= {"CONNECTED": "1", "LOG_JSON": "true"}
        yield Switched(parts, env, address)
    if received != {PARTS[part] for part in parts} - {""}:
        raise ValueError(f"the receiver got {received}: there is nothing to compare")


@contextmanager
def started_stack(
    switched: Switched, names: Sequence[str] = ("trivial", "beat")
) -> Iterator[Stack]:
    """Start a whole stack with these parts, for trivial runs and runs each second (`beat`)."""
    with data_folder() as folder:
        bundles = {name: BUNDLES / name for name in names}
        env = with_lake(folder) | switched.settings | {"SLICEWISE_RUNNER_ENV": "LAKE,CONNECTED"}
        whole = Stack(folder, bundles=bundles, env=env, slots=4)
        try:
            whole.start()
            if "alerts" in switched.parts:
                _send_alerts(whole, switched.address)
            with _scrapes(whole, is_on="metrics" in switched.parts):
                yield whole
        finally:
            whole.stop()


@contextmanager
def _receiver(received: set[str]) -> Iterator[str]:
    """Take events, messages and spans, and keep the paths of the requests alone.

    The receiver parses lengths and paths alone: a real receiver is on another host.
    """
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(
        asyncio.start_server(partial(_answer_all, received), "127.0.0.1", 0)
    )
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        open_connections = asyncio.all_tasks(loop)
        for connection in open_connections:
            connection.cancel()
        if open_connections:
            loop.run_until_complete(asyncio.wait(open_connections))
        loop.close()


async def _answer_all(
    received: set[str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            received.add(head.split(b" ", 2)[1].decode())
            length = _CONTENT_LENGTH.search(head)
            if length is None:
                raise ValueError(f"a request without a length: {head!r}")
            await reader.readexactly(int(length[1]))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    writer.close()


def _send_alerts(whole: Stack, receiver: str) -> None:
    """Create a channel, and a rule for all events."""
    client = sign_in(whole)
    client.post("/channels/", name="connected", kind="webhook", address=receiver + _HOOK)
    client.post("/alert-rules/", name="all", channel="connected", backfill_runs=True)


@contextmanager
def _scrapes(whole: Stack, *, is_on: bool) -> Iterator[None]:
    """Scrape the metrics as often as Prometheus does, if at all."""
    may_end = threading.Event()

    def scrape() -> None:
        while not may_end.wait(_SCRAPE_SECONDS):
            with suppress(OSError), urllib.request.urlopen(f"{whole.web_url}/metrics") as answer:
                answer.read()

    thread = threading.Thread(target=scrape)
    if is_on:
        thread.start()
    try:
        yield
    finally:
        may_end.set()
        if thread.is_alive():
            thread.join()

"""A receiver of events of lineage outside of the stack, which tests switch off and on."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class LineageReceiver:
    """The events that came in, in order; while ``status`` is no success, none is kept."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.refused = 0
        self.status = 201
        self.address = ""

    @property
    def env(self) -> dict[str, str]:
        """The variables by which OpenLineage's client sends events here, without own retries."""
        return {
            "OPENLINEAGE_URL": self.address,
            "OPENLINEAGE__TRANSPORT__TYPE": "http",
            "OPENLINEAGE__TRANSPORT__URL": self.address,
            "OPENLINEAGE__TRANSPORT__RETRY": json.dumps({"total": 0}),
        }


@contextmanager
def open_receiver() -> Iterator[LineageReceiver]:
    """Yield a receiver that listens."""
    receiver = LineageReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if receiver.status < 300:
                receiver.events.append(event)
            else:
                receiver.refused += 1
            self.send_response(receiver.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Keep the output of the tests clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    receiver.address = f"http://127.0.0.1:{server.server_port}"
    yield receiver
    server.shutdown()
    server.server_close()

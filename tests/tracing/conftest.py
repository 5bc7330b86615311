"""A receiver of traces over HTTP, a worker with real runners, and traces switched on."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from assets_app.catalogue.loading import user_code_environment
from assets_app.execution.gateway import publishing, recovery, supervision
from assets_app.models import Gateway
from slicewise.runner.parent_client import WarmParent
from slicewise_server.tracing import receivers
from tests.catalogue.conftest import bundle
from tests.execution.conftest import alice, gateway, sent
from tests.supervised_runs import Worker, root, run, spark
from tests.tracing.received_spans import ReceivedSpan, spans_of

__all__ = ["alice", "bundle", "gateway", "root", "run", "sent", "spark"]


class Receiver:
    """The requests that an OTLP receiver has got."""

    def __init__(self) -> None:
        self.address = ""
        self.types: set[str | None] = set()
        self.requests: list[ExportTraceServiceRequest] = []

    @property
    def spans(self) -> list[ReceivedSpan]:
        """The spans of all requests, after all spans of this process are sent."""
        receivers.exporter().flush()
        return [span for request in self.requests for span in spans_of(request)]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    state = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            body = self.rfile.read(int(self.headers["Content-Length"]))
            state.types.add(self.headers["Content-Type"])
            state.requests.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    state.address = f"http://127.0.0.1:{server.server_port}"
    yield state
    server.shutdown()
    server.server_close()


@pytest.fixture
def traced(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """Switch traces on, to the receiver."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.address)
    # Spans that a busy receiver has not confirmed in time are lost, or sent once more.
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "120")
    receivers.exporter.cache_clear()
    receivers.connect()
    yield receiver
    receivers.disconnect()
    receivers.exporter().close()
    receivers.exporter.cache_clear()


@pytest.fixture
def worker(
    gateway: Gateway, spark: Any, sent: Any, settings: Any, tmp_path: Path
) -> Iterator[Worker]:
    """Return a worker whose runners are real processes."""
    settings.DATA_FOLDER = tmp_path
    played = Worker(gateway)
    parent = WarmParent(env=user_code_environment(), cache=tmp_path / "bundles")
    played.parent = parent  # type: ignore[assignment]
    with (
        patch.object(supervision, "current", lambda: played),
        patch.object(recovery, "current", lambda: played),
        patch.object(publishing, "current", lambda: played),
    ):
        yield played
    parent.close()

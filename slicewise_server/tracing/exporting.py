"""The export of finished spans in the background, by the variables of OpenTelemetry."""

from __future__ import annotations

import atexit
import os
from collections.abc import Mapping
from threading import Event, Thread
from typing import NamedTuple

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from slicewise_server.tracing.variables import names_service

_CLOSE_SECONDS = 3.0

Attributes = Mapping[str, str | int]


class Span(NamedTuple):
    """A finished span; times in nanoseconds since 1970."""

    name: str
    trace_id: int
    span_id: int
    parent_id: int | None
    began: int
    ended: int
    attributes: Attributes
    # The error in words; empty for a span that has succeeded, None for a span that cannot fail.
    error: str | None = None


class Exporter:
    """The exporter of this process. A receiver that is away delays no run."""

    def __init__(self) -> None:
        attributes = {} if names_service(os.environ) else {"service.name": "slicewise"}
        provider = TracerProvider(resource=Resource.create(attributes))
        self._resource, self._sampler = provider.resource, provider.sampler
        self._scope = InstrumentationScope("slicewise")
        self._processor = BatchSpanProcessor(OTLPSpanExporter())
        # A thread cannot be started any more when the process ends.
        self._closing = Event()
        self._closer = Thread(target=self._close_when_asked, name="close-traces", daemon=True)
        self._closer.start()
        atexit.register(self.close)

    def is_sampled(self, trace_id: int) -> bool:
        """Return whether a trace is exported: all processes decide alike."""
        decision = self._sampler.should_sample(None, trace_id, "run").decision
        return decision is Decision.RECORD_AND_SAMPLE

    def export(self, span: Span) -> None:
        """Send a span to the background thread."""
        if self.is_sampled(span.trace_id):
            self._processor.on_end(self._readable(span))

    def flush(self) -> None:
        """Wait until all spans are sent."""
        self._processor.force_flush()

    def close(self) -> None:
        """Send the spans that are left, and wait for a moment: the receiver may be away."""
        self._closing.set()
        self._closer.join(_CLOSE_SECONDS)

    def _close_when_asked(self) -> None:
        self._closing.wait()
        self._processor.shutdown()  # type: ignore[no-untyped-call]

    def _readable(self, span: Span) -> ReadableSpan:
        parent = None if span.parent_id is None else _context(span.trace_id, span.parent_id)
        return ReadableSpan(
            name=span.name,
            context=_context(span.trace_id, span.span_id),
            parent=parent,
            resource=self._resource,
            attributes=dict(span.attributes),
            kind=SpanKind.INTERNAL,
            status=_status(span.error),
            start_time=span.began,
            end_time=max(span.began, span.ended),
            instrumentation_scope=self._scope,
        )


def _context(trace_id: int, span_id: int) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED)
    return SpanContext(trace_id, span_id, is_remote=False, trace_flags=flags)


def _status(error: str | None) -> Status:
    if error is None:
        return Status(StatusCode.UNSET)
    return Status(StatusCode.ERROR, error) if error else Status(StatusCode.OK)

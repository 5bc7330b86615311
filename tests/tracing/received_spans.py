"""Spans as a receiver of OTLP has decoded them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, kw_only=True)
class ReceivedSpan:
    """One span; ids in hexadecimal digits, no parent for a root."""

    name: str
    trace: str
    span: str
    parent: str
    began: int
    ended: int
    status: int
    message: str
    attributes: dict[str, Any]
    resource: dict[str, Any]


def spans_of(request: ExportTraceServiceRequest) -> Iterator[ReceivedSpan]:
    """Return the spans of a request, in order."""
    for resource_spans in request.resource_spans:
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                yield ReceivedSpan(
                    name=span.name,
                    trace=span.trace_id.hex(),
                    span=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    began=span.start_time_unix_nano,
                    ended=span.end_time_unix_nano,
                    status=span.status.code,
                    message=span.status.message,
                    attributes=values_of(span.attributes),
                    resource=values_of(resource_spans.resource.attributes),
                )


def values_of(attributes: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in attributes}

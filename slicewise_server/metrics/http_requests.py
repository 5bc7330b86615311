"""Metrics of HTTP requests."""

from collections.abc import Iterable

from django.db.models import Sum
from prometheus_client.core import Metric

from slicewise_server.metrics.families import counter, histogram
from slicewise_server.metrics.models import TimeCount
from slicewise_server.metrics.timed_metrics import TimedMetric


def collect_requests() -> Iterable[Metric]:
    """Return the metrics of requests, of all web processes together."""
    kept = TimeCount.objects.filter(metric=TimedMetric.HTTP_REQUEST)
    rows = kept.values_list("labels").annotate(Sum("observations")).order_by("labels")
    yield counter(
        "slicewise_http_requests",
        "HTTP requests that were answered.",
        ("handler", "method", "code"),
        ((labels.split("|"), number) for labels, number in rows),
    )
    yield histogram(
        "slicewise_http_request_duration_seconds",
        "Time from the start of handling a request to its answer.",
        ("handler",),
        TimedMetric.HTTP_REQUEST,
        kept=1,
    )

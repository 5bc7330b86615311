"""Metrics in the form of the client library, from rows of the database."""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from django.db import connection
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from slicewise_server.metrics.buckets import BOUNDS
from slicewise_server.metrics.models import TimeCount
from slicewise_server.metrics.timed_metrics import TimedMetric

Samples = Iterable[tuple[Sequence[str], float]]
"""The values of the labels, and the number."""


def rows_of(statement: str, values: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
    """Return the rows of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


def gauge(name: str, text: str, labels: Sequence[str], samples: Samples) -> Metric:
    """Return a metric that goes up and down."""
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, number in samples:
        family.add_metric(values, number)
    return family


def single(name: str, text: str, number: float) -> Metric:
    """Return a metric without labels that goes up and down."""
    return GaugeMetricFamily(name, text, value=number)


def counter(name: str, text: str, labels: Sequence[str], samples: Samples) -> Metric:
    """Return a metric that only goes up; its samples have `_total` after the name."""
    family = CounterMetricFamily(name, text, labels=labels)
    for values, number in samples:
        family.add_metric(values, number)
    return family


def histogram(
    name: str, text: str, labels: Sequence[str], metric: TimedMetric, kept: int | None = None
) -> Metric:
    """Return the times that are kept of a metric; only the first `kept` labels tell times apart."""
    counts: dict[tuple[str, ...], list[int]] = {}
    sums: dict[tuple[str, ...], float] = {}
    for row in TimeCount.objects.filter(metric=metric).order_by("labels", "bucket"):
        values = tuple(row.labels.split("|"))[:kept]
        buckets = counts.setdefault(values, [0] * (len(BOUNDS) + 1))
        buckets[row.bucket] += row.observations
        sums[values] = sums.get(values, 0.0) + row.seconds
    family = HistogramMetricFamily(name, text, labels=labels)
    for values, numbers in counts.items():
        bounds = [*map(repr, BOUNDS), "+Inf"]
        family.add_metric(
            values, list(zip(bounds, accumulate(numbers), strict=True)), sum_value=sums[values]
        )
    return family

"""Metrics of late partitions."""

from collections.abc import Iterable

from prometheus_client.core import Metric

from assets_app.queries.clock import database_now
from assets_app.queries.overdue import late_total
from slicewise_server.metrics.families import gauge


def collect_late_partitions() -> Iterable[Metric]:
    """Return the metric of late partitions."""
    total = late_total(database_now())
    yield gauge(
        "slicewise_late_partitions",
        "Partitions without data later than freshness= after the end of the window.",
        ("state",),
        ((("late",), total.late), (("overdue",), total.overdue)),
    )

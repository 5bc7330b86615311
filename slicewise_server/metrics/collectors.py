"""The register of collectors: each returns some metrics, and costs a bounded time."""

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import Metric

from slicewise_server.metrics.backfills import collect_backfills
from slicewise_server.metrics.gateways import collect_gateways, collect_leases
from slicewise_server.metrics.http_requests import collect_requests
from slicewise_server.metrics.lateness import collect_late_partitions
from slicewise_server.metrics.runs import collect_runs
from slicewise_server.metrics.scheduling import collect_outboxes, collect_ticks

Collector = Callable[[], Iterable[Metric]]
"""Return metrics, from a few looks at indexes or kept counts.

A collector runs in a read-only transaction of its own, which may take two seconds.
"""

COLLECTORS: Mapping[str, Collector] = {
    "runs": collect_runs,
    "ticks": collect_ticks,
    "outboxes": collect_outboxes,
    "gateways": collect_gateways,
    "leases": collect_leases,
    "backfills": collect_backfills,
    "late partitions": collect_late_partitions,
    "http": collect_requests,
}

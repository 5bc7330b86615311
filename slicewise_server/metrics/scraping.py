"""One scrape: all collectors, each by itself, and the text that Prometheus reads."""

import logging
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from threading import Lock
from time import monotonic
from typing import NamedTuple

from prometheus_client.core import InfoMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics

from slicewise_server.metrics.collectors import COLLECTORS, Collector
from slicewise_server.metrics.families import gauge
from slicewise_server.web.statement_limits import statement_limit

log = logging.getLogger(__name__)

# Scrapes within this time get the same numbers, so that scrapers cannot load the database.
KEPT_SECONDS = 5.0
# The longest time of one statement of a collector.
_STATEMENT_MILLISECONDS = 2_000
_OPENMETRICS = "application/openmetrics-text"


class Exposition(NamedTuple):
    """The text of a scrape, and its content type."""

    text: bytes
    content_type: str


class Scraper:
    """The metrics of this process's last scrape; a few seconds old at most."""

    def __init__(
        self,
        collectors: Mapping[str, Collector] = COLLECTORS,
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._collectors, self._clock = collectors, clock
        self._lock = Lock()
        self._families: list[Metric] = []
        self._collected_at: float | None = None

    def collect(self) -> list[Metric]:
        """Return all metrics; one thread collects, and others wait for its metrics."""
        with self._lock:
            now = self._clock()
            if self._collected_at is None or now - self._collected_at >= KEPT_SECONDS:
                self._families = collected(self._collectors)
                self._collected_at = now
            return self._families

    def expose(self, accept: str) -> Exposition:
        """Return the metrics as OpenMetrics if a client names that format, else as plain text."""
        if _OPENMETRICS in accept:
            text: bytes = openmetrics.generate_latest(self)  # type: ignore[no-untyped-call]
            return Exposition(text, openmetrics.CONTENT_TYPE_LATEST)
        return Exposition(generate_latest(self), CONTENT_TYPE_PLAIN_0_0_4)


def collected(collectors: Mapping[str, Collector]) -> list[Metric]:
    """Return the metrics of all collectors; an error of one is logged and keeps no other away."""
    families: list[Metric] = []
    successes, seconds = {}, {}
    for name, collect in collectors.items():
        began = monotonic()
        metrics = _metrics_of(name, collect)
        successes[name], seconds[name] = metrics is not None, monotonic() - began
        families += metrics or []
    info = InfoMetricFamily("slicewise_build", "The version of the server.")
    info.add_metric((), {"version": version("slicewise")})
    labels = ("collector",)
    return [
        *families,
        gauge(
            "slicewise_collector_success",
            "Whether the metrics of a collector could be read: 1 or 0.",
            labels,
            (((name,), float(success)) for name, success in successes.items()),
        ),
        gauge(
            "slicewise_collector_duration_seconds",
            "Time that a collector took in this scrape.",
            labels,
            (((name,), taken) for name, taken in seconds.items()),
        ),
        info,
    ]


def _metrics_of(name: str, collect: Collector) -> Iterable[Metric] | None:
    """Return the metrics of one collector; None after an error."""
    try:
        with statement_limit(_STATEMENT_MILLISECONDS):
            return list(collect())
    except Exception:
        log.exception("metrics not collected", extra={"collector": name})
        return None

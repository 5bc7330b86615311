"""HTTP requests: counted in each web process, added up in the database every few seconds.

The web server imports this module before Django is set up: it has no models.
"""

import logging
from collections.abc import Callable, Mapping
from threading import Lock, Thread
from time import monotonic, sleep

from django.conf import settings
from django.db import Error, connection
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from slicewise_server.metrics.buckets import bucket_of
from slicewise_server.metrics.timed_metrics import TimedMetric
from slicewise_server.serving.long_poll import POSITION

log = logging.getLogger(__name__)

STORE_SECONDS = 5.0
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_OTHER = "other"

# In one order, so that two processes that store at once do not dead-lock.
_STORE = """
INSERT INTO metrics_timecount AS total (metric, labels, bucket, observations, seconds)
SELECT %(metric)s, taken.* FROM unnest(
    %(labels)s::text[], %(buckets)s::int[], %(observations)s::bigint[], %(seconds)s::float[]
) AS taken(labels, bucket, observations, seconds)
ORDER BY labels COLLATE "C", bucket
ON CONFLICT (metric, labels, bucket) DO UPDATE
    SET observations = total.observations + EXCLUDED.observations,
        seconds = total.seconds + EXCLUDED.seconds
"""

_Key = tuple[str, int]


class RequestCounts:
    """The requests of this process that are not stored yet, by labels and bucket of time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._numbers: dict[_Key, tuple[int, float]] = {}

    def add(self, labels: str, seconds: float) -> None:
        """Count one request."""
        self._add({(labels, bucket_of(seconds)): (1, seconds)})

    def store(self) -> None:
        """Add the counts to the database; keep them if the database is away."""
        with self._lock:
            numbers, self._numbers = self._numbers, {}
        if not numbers:
            return
        try:
            _store(numbers)
        except Error:
            self._add(numbers)
            raise

    def _add(self, numbers: Mapping[_Key, tuple[int, float]]) -> None:
        with self._lock:
            for key, (count, seconds) in numbers.items():
                counted, sum_seconds = self._numbers.get(key, (0, 0.0))
                self._numbers[key] = counted + count, sum_seconds + seconds


COUNTS = RequestCounts()


class MeasuringMiddleware:
    """Middleware that counts requests, with the time from the first middleware to the answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        began = monotonic()
        response = self.get_response(request)
        # A request that waits for news is handled every half second: the first time counts.
        if POSITION not in request.META:
            method = request.method if request.method in _METHODS else _OTHER
            labels = f"{_handler(request.path_info)}|{method}|{response.status_code}"
            COUNTS.add(labels, monotonic() - began)
        return response


def store_steadily() -> None:
    """Start a thread that stores the counts of this process every few seconds."""
    Thread(target=_store_for_ever, name="request-counts", daemon=True).start()


def _handler(path: str) -> str:
    """Return the part of the server that handles a path: one of a few words."""
    if path in (settings.HEALTH_ADDRESS, settings.METRICS_ADDRESS):
        return "probes"
    for prefix, name in (("/api/", "api"), ("/admin/", "admin"), (settings.STATIC_URL, "static")):
        if path.startswith(prefix):
            return name
    return "pages"


def _store(numbers: Mapping[_Key, tuple[int, float]]) -> None:
    keys, values = zip(*numbers.items(), strict=True)
    labels, buckets = zip(*keys, strict=True)
    observations, seconds = zip(*values, strict=True)
    with connection.cursor() as cursor:
        cursor.execute(
            _STORE,
            {
                "metric": TimedMetric.HTTP_REQUEST,
                "labels": list(labels),
                "buckets": list(buckets),
                "observations": list(observations),
                "seconds": list(seconds),
            },
        )


def _store_for_ever() -> None:
    while True:
        sleep(STORE_SECONDS)
        try:
            COUNTS.store()
        except Exception as error:
            log.warning("request counts not stored yet", extra={"error": str(error)})
        finally:
            connection.close()

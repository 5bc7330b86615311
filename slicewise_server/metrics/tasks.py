"""Tasks of metrics."""

from celery import shared_task

from assets_app.execution.queue.coalescing import Coalesced
from slicewise_server.metrics.counting import count_runs

_count = Coalesced(count_runs)


@shared_task(name="slicewise_server.metrics.tasks.count")
def count() -> None:
    """Add the noted changes of runs to the counts that a scrape reads."""
    _count.request()

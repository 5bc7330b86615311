"""Metrics of runs and of the queues."""

from collections.abc import Iterable

from django.conf import settings
from prometheus_client.core import Metric

from assets_app.models import TERMINAL_STATES, Queue, RunState
from slicewise_server.metrics.families import counter, gauge, histogram, rows_of
from slicewise_server.metrics.timed_metrics import TimedMetric

NO_GROUP, OTHER_GROUPS = "none", "other"

# The groups with the oldest assets have a label value of their own: a group never loses the label
# value to a newer group.
_COUNTS = """
WITH ranked AS (
    SELECT "group", row_number() OVER (ORDER BY min(id)) AS rank
    FROM assets_app_asset WHERE "group" <> '' GROUP BY "group"
)
SELECT counted.state, counted.queue,
       CASE WHEN asset."group" = '' THEN %(none)s
            WHEN ranked.rank <= %(most)s THEN asset."group"
            ELSE %(other)s END AS asset_group,
       sum(counted.runs), sum(counted.entered)
FROM metrics_runcount AS counted
JOIN assets_app_asset AS asset ON asset.id = counted.asset_id
LEFT JOIN ranked ON ranked."group" = asset."group"
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""
# The first ready run of each group that is not paused: one look at an index for each group.
_OLDEST = """
SELECT queue.name,
       coalesce(max(extract(epoch FROM clock_timestamp() - run.queued_at)), 0)
FROM unnest(%(queues)s::text[]) AS queue(name)
LEFT JOIN assets_app_queuehead AS head ON head.queue = queue.name AND NOT head.paused
LEFT JOIN assets_app_run AS run ON run.id = head.run_id AND run.state = 'queued'
GROUP BY queue.name ORDER BY queue.name
"""


def collect_runs() -> Iterable[Metric]:
    """Return the metrics of runs by state, queue and asset group, and the times of runs."""
    values = {"none": NO_GROUP, "other": OTHER_GROUPS, "most": settings.METRICS_GROUPS}
    counts = rows_of(_COUNTS, values)
    labels = ("state", "queue", "group")
    yield gauge(
        "slicewise_runs",
        "Runs on record, by state.",
        labels,
        (((state, queue, group), int(runs)) for state, queue, group, runs, _ in counts),
    )
    yield counter(
        "slicewise_runs_ended",
        "Runs that have ended; a run that is retried after its end counts again.",
        labels,
        (
            ((state, queue, group), int(entered))
            for state, queue, group, _, entered in counts
            if state in TERMINAL_STATES
        ),
    )
    queued = dict.fromkeys(Queue.values, 0)
    for state, queue, _, runs, _ in counts:
        if state == RunState.QUEUED:
            queued[queue] += int(runs)
    yield gauge(
        "slicewise_queued_runs",
        "Runs that wait for a slot, or for the time of their next attempt.",
        ("queue",),
        (((queue,), number) for queue, number in queued.items()),
    )
    oldest = rows_of(_OLDEST, {"queues": Queue.values})
    yield gauge(
        "slicewise_oldest_queued_run_age_seconds",
        "Time since the longest waiting run was queued; runs of paused groups do not count.",
        ("queue",),
        (((queue,), max(float(seconds), 0.0)) for queue, seconds in oldest),
    )
    yield histogram(
        "slicewise_run_start_delay_seconds",
        "Time from queueing a run to the start of its first attempt.",
        ("queue",),
        TimedMetric.RUN_START_DELAY,
    )
    yield histogram(
        "slicewise_run_duration_seconds",
        "Time from the start of a run's first attempt to the end of the run.",
        ("queue", "state"),
        TimedMetric.RUN_DURATION,
    )

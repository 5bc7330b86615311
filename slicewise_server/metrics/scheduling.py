"""Metrics of schedules and of the outboxes."""

from collections.abc import Iterable

from prometheus_client.core import Metric

from slicewise_server.lineage.client_settings import sends_events
from slicewise_server.lineage.outbox import UNWRITTEN_STARTS
from slicewise_server.metrics.families import gauge, rows_of, single

# At most so many entries of an outbox are counted.
MOST_COUNTED = 100_000

# A tick that has failed waits for its next try, which is the `next_at` of its schedule then.
_TICKS = """
SELECT coalesce(extract(epoch FROM clock_timestamp() - min(next_at)), 0)
FROM assets_app_schedule WHERE next_at <= clock_timestamp()
"""
_FAILING = "SELECT count(*) FROM assets_app_schedule WHERE failures > 0"
# The entries of each outbox that wait, with the time since when an entry waits.
OUTBOXES = {
    "assets": "SELECT created_at AS since FROM assets_app_outbox",
    "events": "SELECT at AS since FROM events_event WHERE position IS NULL",
    "alerts": "SELECT send_at AS since FROM alerts_delivery WHERE state = 'waiting'",
    "lineage": "SELECT at AS since FROM lineage_lineageevent WHERE sent_at IS NULL",
    "run_counts": "SELECT NULL::timestamptz AS since FROM metrics_runchange",
}
_WAITING = """
SELECT count(*), coalesce(extract(epoch FROM clock_timestamp() - min(since)), 0)
FROM ({entries} LIMIT %(most)s) AS entry
"""


def collect_ticks() -> Iterable[Metric]:
    """Return the metrics of schedules."""
    yield single(
        "slicewise_tick_lag_seconds",
        "Time since the earliest tick that is due and not handled; 0 without such a tick.",
        float(rows_of(_TICKS)[0][0]),
    )
    yield single(
        "slicewise_failing_schedules",
        "Schedules whose last tick or evaluation has failed.",
        rows_of(_FAILING)[0][0],
    )


def collect_outboxes() -> Iterable[Metric]:
    """Return the number of waiting entries of each outbox, and the age of the oldest entry."""
    outboxes = dict(OUTBOXES)
    if sends_events():
        # The starts come first: these are few.
        outboxes["lineage"] = f"{UNWRITTEN_STARTS} UNION ALL {outboxes['lineage']}"
    waiting = [
        (name, *rows_of(_WAITING.format(entries=entries), {"most": MOST_COUNTED})[0])
        for name, entries in outboxes.items()
    ]
    yield gauge(
        "slicewise_outbox_entries",
        f"Entries that wait to be handled or sent; counted up to {MOST_COUNTED:,}.",
        ("outbox",),
        (((name,), number) for name, number, _ in waiting),
    )
    yield gauge(
        "slicewise_outbox_oldest_entry_age_seconds",
        "Time for which the oldest entry has waited; for alerts, since the time of its next try.",
        ("outbox",),
        (((name,), max(float(age), 0.0)) for name, _, age in waiting if name != "run_counts"),
    )

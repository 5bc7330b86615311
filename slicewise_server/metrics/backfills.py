"""Metrics of backfills. No label names a backfill: people create new backfills all the time."""

from collections.abc import Iterable

from django.db.models import Count, Sum
from prometheus_client.core import Metric

from backfills_app.models import ENDED_STATES, Backfill, BackfillAsset, BackfillState
from slicewise_server.metrics.families import gauge

_PARTITION_STATES = ("waiting", "active", "succeeded", "failed", "canceled", "skipped")


def collect_backfills() -> Iterable[Metric]:
    """Return the number of backfills by state, and the progress of backfills under way."""
    states = dict.fromkeys(BackfillState.values, 0)
    backfills = Backfill.objects.filter(deleted=False).order_by()
    states |= dict(backfills.values_list("state").annotate(Count("id")))
    yield gauge(
        "slicewise_backfills",
        "Backfills on record, by state.",
        ("state",),
        (((state,), number) for state, number in states.items()),
    )
    under_way = BackfillAsset.objects.exclude(backfill__state__in=ENDED_STATES)
    sums = under_way.aggregate(*(Sum(state, default=0) for state in ("total", *_PARTITION_STATES)))
    yield gauge(
        "slicewise_backfill_partitions",
        "Partitions of backfills that have not ended, by state; unexpanded: no row as yet.",
        ("state",),
        [
            *(((state,), sums[f"{state}__sum"]) for state in _PARTITION_STATES),
            (("unexpanded",), _unexpanded(sums)),
        ],
    )


def _unexpanded(sums: dict[str, int]) -> int:
    return sums["total__sum"] - sum(sums[f"{state}__sum"] for state in _PARTITION_STATES)

"""How long a backfill would take, from the runs that its assets have had."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from statistics import median, quantiles

from django.db.models import Sum
from django.utils import timezone

from assets_app.models import Asset, Gateway, Queue, Run, RunState
from assets_app.models.gateways import GATEWAY_SILENCE

FEWEST_RUNS = 3
_RUNS_LOOKED_AT = 100


@dataclass(frozen=True, slots=True)
class Estimate:
    """How long it would take, in seconds: by the median of past runs, and by their quartiles."""

    seconds: float
    low: float
    high: float
    runs_seen: int


def estimated(asset: Asset, partitions: int, runs: int, at_once: int) -> Estimate | None:
    """From the latest runs of the asset that succeeded; None below three of them.

    A run of several partitions takes as long as past ones took for each of theirs, or, where all
    past runs were as small, as many of them.
    """
    if not runs:
        return Estimate(0, 0, 0, 0)
    per_run = max(partitions / runs, 1)
    durations = _durations(asset, is_single=per_run < 2)
    if len(durations) < FEWEST_RUNS:
        return None
    rounds = -(-runs // at_once)
    size = per_run if per_run >= 2 else 1
    low, _, high = quantiles(durations, n=4)
    each = size * rounds
    return Estimate(median(durations) * each, low * each, high * each, len(durations))


def summed(estimates: Iterable[Estimate | None]) -> Estimate | None:
    """One after the other, since they share the slots; None where one is not known."""
    found = list(estimates)
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    return Estimate(
        sum(each.seconds for each in known),
        sum(each.low for each in known),
        sum(each.high for each in known),
        sum(each.runs_seen for each in known),
    )


def runs_at_once(max_active_runs: int) -> int:
    """How many runs of a backfill go on at once: its limit, or the slots that there are."""
    live = Gateway.objects.filter(
        queue=Queue.BACKFILL, draining=False, last_seen__gt=timezone.now() - GATEWAY_SILENCE
    )
    slots = live.aggregate(slots=Sum("slots"))["slots"] or max_active_runs
    return max(1, min(max_active_runs, slots))


def _durations(asset: Asset, *, is_single: bool) -> list[float]:
    """Seconds of the latest runs: of such with one partition, else per partition.

    Where there are none like the ones that are planned, of all of them.
    """
    done = Run.objects.making(asset).filter(
        state=RunState.SUCCEEDED, started_at__isnull=False, partition_count__gt=0
    )
    rows = [
        (max((ended - started) / timedelta(seconds=1), 0.0), count)
        for started, ended, count in done.order_by("-id").values_list(
            "started_at", "ended_at", "partition_count"
        )[:_RUNS_LOOKED_AT]
        if started is not None and ended is not None
    ]
    alike = [(took, count) for took, count in rows if (count == 1) == is_single]
    taken = alike if len(alike) >= FEWEST_RUNS else rows
    return [took / count for took, count in taken]

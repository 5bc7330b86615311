"""The runs of a planned backfill, and estimates of its duration from past runs of the assets."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import median, quantiles

from django.db.models import Sum
from django.db.models.functions import Now

import slicewise
from assets_app.execution.request.requests import partitions_per_run
from assets_app.models import Asset, Gateway, Queue, Run, RunState
from assets_app.models.gateways import GATEWAY_SILENCE
from backfills_app.services.partitions.scopes import AssetScope

FEWEST_RUNS = 3
# Runs are compared if neither has more than so many times the partitions of the other. A run of a
# month may take hardly longer than a run of a day: much smaller runs tell nothing.
_ALIKE = 2
_RUNS_LOOKED_AT = 100


@dataclass(frozen=True, slots=True)
class Estimate:
    """The duration in seconds, estimated by the median of past runs and by their quartiles."""

    seconds: float
    low: float
    high: float
    runs_seen: int


def run_count(scope: AssetScope, partitions: slicewise.PartitionSet, *, allow_holes: bool) -> int:
    """Count the runs that materialize these partitions, split as admission splits partitions."""
    size = partitions_per_run(scope.strategy)
    if size is None:
        return int(bool(partitions))
    if size == 1:
        return len(partitions)
    lengths: Sequence[int]
    if allow_holes:
        lengths = [len(partitions & term) for term in scope.terms]
    else:
        lengths = [
            stop - first
            for term in scope.terms
            for first, stop in scope.positions.unbroken(partitions & term)
        ]
    return sum(-(-length // size) for length in lengths)


def estimated(asset: Asset, partitions: int, runs: int, at_once: int) -> Estimate | None:
    """Estimate from the latest succeeded runs of the asset with about as many partitions as the
    planned runs; return None below three such runs.
    """
    if not runs:
        return Estimate(0, 0, 0, 0)
    per_run = max(partitions / runs, 1)
    durations = _durations(asset, per_run)
    if len(durations) < FEWEST_RUNS:
        return None
    low, _, high = quantiles(durations, n=4)
    partitions_in_sequence = per_run * -(-runs // at_once)
    return Estimate(
        median(durations) * partitions_in_sequence,
        low * partitions_in_sequence,
        high * partitions_in_sequence,
        len(durations),
    )


def summed(estimates: Iterable[Estimate | None]) -> Estimate | None:
    """Add up estimates, since their runs share the slots; return None where one is unknown."""
    all_estimates = list(estimates)
    known_estimates = [estimate for estimate in all_estimates if estimate is not None]
    if len(known_estimates) < len(all_estimates):
        return None
    return Estimate(
        sum(estimate.seconds for estimate in known_estimates),
        sum(estimate.low for estimate in known_estimates),
        sum(estimate.high for estimate in known_estimates),
        sum(estimate.runs_seen for estimate in known_estimates),
    )


def runs_at_once(max_active_runs: int) -> int:
    """Return how many runs of a backfill are active at once: its limit, or the number of slots."""
    live = Gateway.objects.filter(
        queue=Queue.BACKFILL, draining=False, last_seen__gt=Now() - GATEWAY_SILENCE
    )
    slots = live.aggregate(slots=Sum("slots"))["slots"] or max_active_runs
    return max(1, min(max_active_runs, slots))


def _durations(asset: Asset, per_run: float) -> list[float]:
    """Return the seconds per partition of the latest runs with about so many partitions."""
    succeeded_runs = Run.objects.materializing(asset).filter(
        state=RunState.SUCCEEDED,
        started_at__isnull=False,
        partition_count__gte=per_run / _ALIKE,
        partition_count__lte=per_run * _ALIKE,
    )
    rows = succeeded_runs.order_by("-id").values_list("started_at", "ended_at", "partition_count")
    return [
        max((ended - started) / timedelta(seconds=1), 0.0) / count
        for started, ended, count in rows[:_RUNS_LOOKED_AT]
        if started is not None and ended is not None
    ]

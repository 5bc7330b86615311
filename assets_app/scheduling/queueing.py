"""Which partitions of an asset that assets schedule are due, and queueing those."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db.models import QuerySet

import slicewise
from assets_app.execution.claims import ClaimedPartition, HeldPartition, PlannedRun, claim_all
from assets_app.models import Asset, AssetDependency, Schedule, Trigger
from assets_app.scheduling.planning import planned_runs, terms_of
from assets_app.scheduling.readiness import Verdict, judge
from assets_app.scheduling.slices import mark_due_again, mark_due_later, refuse_locked
from assets_app.scheduling.tick_terms import TickTerms, tick_terms
from slicewise.rows import PartitionRow, partition_rows


@dataclass(frozen=True, slots=True)
class Touched:
    """An asset scheduled by others, and those of its partitions that something happened to."""

    schedule: Schedule
    asset: Asset
    partitions: slicewise.PartitionSet


def taken_by_schedule(asset: Asset) -> Asset:
    """Return the asset as a schedule by assets sees it, if its partitions are found at run time.

    An asset scheduled by an asset of the same set is made key by key; for any other, a run
    discovers its partitions.
    """
    if not asset.finds_partitions:
        return asset
    same_set = scheduling_edges().filter(
        downstream=asset, upstream__partition_definition=asset.partition_definition_id
    )
    return asset if same_set.exists() else asset.discovering


def scheduling_edges() -> QuerySet[AssetDependency]:
    """Select the dependencies that schedule, with all rows that judging reads."""
    return (
        AssetDependency.objects.select_related(
            "upstream__partition_definition",
            "downstream__partition_definition",
            "downstream__producer__current_version",
            "downstream__producer__schedule__group",
        )
        .filter(scheduling=True, downstream__active=True)
        .order_by("downstream_id", "upstream__name")
    )


def queue_due(
    touched: Touched,
    made: set[tuple[int, str]] | None,
    now: datetime,
    since: datetime | None = None,
    since_by_key: Mapping[str, datetime] | None = None,
) -> int:
    """Queue those of the touched partitions that are due now; how many.

    ``made`` names what was just made upstream, where that is known. ``since`` and ``since_by_key``
    say from when on ticks of the times in the schedule are looked at; else none is. Windows that
    are not over yet are looked at again when they are, those that wait for a tick at the next one.
    Raises SlicesLocked where another transaction has locked some of the slices.
    """
    definition = touched.asset.definition
    if not touched.partitions:
        return 0
    rows = list(partition_rows(definition, touched.partitions))
    refuse_locked(touched.asset, rows)
    early = [row for row in rows if row.end is not None and row.end > now]
    rows = [row for row in rows if row.end is None or row.end <= now]
    mark_due_later(touched.asset, early)
    terms = tick_terms(touched.schedule, now, since=since, since_by_key=since_by_key)
    verdicts = judge_rows(touched.asset, rows, made, now, terms)
    return len(queue_verdicts(touched.schedule, touched.asset, verdicts, now, terms).claimed)


def judge_rows(
    asset: Asset,
    rows: Sequence[PartitionRow],
    made: set[tuple[int, str]] | None,
    now: datetime,
    terms: TickTerms | None,
) -> list[Verdict]:
    """Return how the partitions stand with the asset's schedule."""
    edges = list(scheduling_edges().filter(downstream=asset))
    for edge in edges:
        edge.downstream = asset
    return judge(asset, edges, rows, made=made, now=now, terms=terms)


class Queued(NamedTuple):
    """What was queued of the due partitions, and what another run holds."""

    claimed: list[ClaimedPartition]
    held: list[HeldPartition]


def queue_verdicts(
    schedule: Schedule,
    asset: Asset,
    verdicts: Sequence[Verdict],
    now: datetime,
    terms: TickTerms | None,
    *,
    tick_id: int | None = None,
) -> Queued:
    """Queue what is due, and put off until the next tick the windows that wait for one.

    What has no window is looked at by each tick.
    """
    by_assets = [v.row for v in verdicts if v.is_due and not v.is_due_by_tick]
    by_tick = [v.row for v in verdicts if v.is_due_by_tick]
    planned: list[PlannedRun] = [
        *planned_runs(terms_of(schedule, asset, Trigger.UPSTREAM), by_assets),
        *planned_runs(terms_of(schedule, asset, Trigger.SCHEDULE, tick_id=tick_id), by_tick),
    ]
    claimed, held = claim_all(planned)
    if terms is None:
        mark_due_again(held)
        return Queued(claimed, held)
    since = {row.key: moment for row in by_tick if (moment := terms.since_of(row.key)) is not None}
    mark_due_again(held, now, since, terms.last_tick)
    waiting = [v.row for v in verdicts if v.waits_for_tick and v.row.end is not None]
    if next_at := terms.next_at:
        mark_due_later(asset, waiting, next_at)
    return Queued(claimed, held)

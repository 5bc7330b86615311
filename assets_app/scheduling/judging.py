"""Schedules by assets: a recorded run, or a write told of, makes due what waited for it (AIP-75,
AIP-76).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_

from django.conf import settings
from django.db import connection, transaction
from django.db.models import QuerySet

import slicewise
from assets_app.execution.claims import PlannedRun, claim_all
from assets_app.execution.messages import nudge_dispatch
from assets_app.models import DISCOVERY, Asset, AssetDependency, Outbox, Schedule, Trigger
from assets_app.scheduling.affected import Made, affected
from assets_app.scheduling.apart import apart
from assets_app.scheduling.planning import planned_runs, terms_of
from assets_app.scheduling.readiness import judge
from assets_app.scheduling.recording import record_left_out
from assets_app.scheduling.slices import mark_due_again, mark_due_later
from slicewise.rows import PartitionRow, partition_rows

_RUNS_AT_ONCE = 200

# Of what the runs made, and of what was told of: when that was, and of what has no window when it
# was made before. That a backfill made it is no tick, since what it makes is never judged. That a
# run has looked for partitions makes nothing due; what it has found does.
_MADE = """
SELECT made.run_id, made.report_id, piece.asset_id, piece.identity, piece.key, made.created_at,
       before.created_at
FROM assets_app_materialization AS made
JOIN assets_app_assetpartition AS piece ON piece.id = made.slice_id
LEFT JOIN LATERAL (
    SELECT earlier.created_at
    FROM assets_app_materialization AS earlier
    LEFT JOIN assets_app_run AS run ON run.id = earlier.run_id
    WHERE earlier.slice_id = made.slice_id AND earlier.version < made.version
      AND piece.window_start IS NULL AND run.trigger IS DISTINCT FROM %s
    ORDER BY earlier.version DESC LIMIT 1
) AS before ON true
WHERE (made.run_id = ANY(%s) OR made.report_id = ANY(%s)) AND piece.identity <> %s
ORDER BY made.id
"""


@dataclass(frozen=True, slots=True)
class Touched:
    """An asset scheduled by others, and those of its partitions that something happened to."""

    schedule: Schedule
    asset: Asset
    partitions: slicewise.PartitionSet


@dataclass(frozen=True, slots=True)
class _Follower:
    """An asset scheduled by some that were made, with its dependencies on those."""

    schedule: Schedule
    edges: list[AssetDependency]

    @property
    def asset(self) -> Asset:
        return self.edges[0].downstream


def judge_outbox(now: datetime) -> int:
    """Queue what the runs and reports in the outbox have made due; how many were looked at."""
    if not Outbox.objects.exists():
        return 0
    with transaction.atomic():
        entries = list(
            Outbox.objects.select_for_update(skip_locked=True).order_by("id")[:_RUNS_AT_ONCE]
        )
        Outbox.objects.filter(pk__in=[entry.pk for entry in entries]).delete()
        made = _made_by(entries)
        for follower in _followers(made):
            with apart(follower.asset):
                _judge(follower, made, now)
        nudge_dispatch()
    return len(entries)


def _made_by(entries: Iterable[Outbox]) -> list[Made]:
    runs = [entry.run_id for entry in entries if entry.run_id is not None]
    reports = [entry.report_id for entry in entries if entry.report_id is not None]
    with connection.cursor() as cursor:
        cursor.execute(_MADE, [Trigger.BACKFILL, runs, reports, DISCOVERY])
        return [
            Made(write=(run, report), asset_id=of, identity=identity, key=key, at=at, before=before)
            for run, report, of, identity, key, at, before in cursor.fetchall()
        ]


def _followers(made: Sequence[Made]) -> list[_Follower]:
    """The assets that are scheduled by what was made."""
    # By producer: of what is made together one asset is asked for, and the others come with it.
    found: dict[int, _Follower] = {}
    for edge in scheduling_edges().filter(upstream__in={piece.asset_id for piece in made}):
        producer = edge.downstream.producer
        schedule = None if producer is None else getattr(producer, "schedule", None)
        if producer is None or schedule is None or schedule.rule is None or edge.downstream.paused:
            continue
        follower = found.setdefault(producer.pk, _Follower(schedule, [edge]))
        if edge.downstream == follower.asset and edge not in follower.edges:
            follower.edges.append(edge)
    return list(found.values())


def _judge(follower: _Follower, made: Sequence[Made], now: datetime) -> None:
    """Queue what has come due of the asset by what was made: together, unless that is more than one
    write may queue. Then write by write, each up to that limit.
    """
    asset = taken_by_schedule(follower.asset)
    partitions = _touched(follower, asset, made, now)
    if len(partitions) <= settings.MAX_PARTITIONS_PER_TICK:
        queue_due(Touched(follower.schedule, asset, partitions), _names(made), now)
        return
    for pieces in _by_write(made):
        one = _capped(asset, _touched(follower, asset, pieces, now), now)
        # What an earlier one has queued is not to come due again.
        queue_due(Touched(follower.schedule, asset, one & partitions), _names(pieces), now)
        partitions -= one


def _by_write(made: Sequence[Made]) -> Iterable[list[Made]]:
    writes: dict[object, list[Made]] = {}
    for piece in made:
        writes.setdefault(piece.write, []).append(piece)
    return writes.values()


def _names(made: Sequence[Made]) -> set[tuple[int, str]]:
    return {(piece.asset_id, piece.key) for piece in made}


def _touched(
    follower: _Follower, asset: Asset, made: Sequence[Made], now: datetime
) -> slicewise.PartitionSet:
    found: list[slicewise.PartitionSet] = []
    for edge in follower.edges:
        edge.downstream = asset
        pieces = [piece for piece in made if piece.asset_id == edge.upstream_id]
        found.append(affected(edge, pieces, since=follower.schedule.handled_until, now=now))
    return reduce(or_, found)


def taken_by_schedule(asset: Asset) -> Asset:
    """How a schedule by assets takes an asset whose partitions are found at run time.

    Scheduled by an asset of the same set it is made key by key; else a run finds its partitions.
    """
    if not asset.finds_partitions:
        return asset
    same_set = scheduling_edges().filter(
        downstream=asset, upstream__partition_definition=asset.partition_definition_id
    )
    return asset if same_set.exists() else asset.discovering


def scheduling_edges() -> QuerySet[AssetDependency]:
    """Dependencies that schedule, with all that judging them reads."""
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


def queue_due(touched: Touched, made: set[tuple[int, str]] | None, now: datetime) -> int:
    """Queue those of the touched partitions that are due now; how many.

    ``made`` names what was just made upstream, where that is known. Windows that are not over yet
    are looked at again when they are.
    """
    definition = touched.asset.definition
    if not touched.partitions:
        return 0
    rows = list(partition_rows(definition, touched.partitions))
    early = [row for row in rows if row.end is not None and row.end > now]
    rows = [row for row in rows if row.end is None or row.end <= now]
    mark_due_later(touched.asset, early)
    return _queue(touched, rows, made, now)


def _queue(
    touched: Touched, rows: Sequence[PartitionRow], made: set[tuple[int, str]] | None, now: datetime
) -> int:
    asset = touched.asset
    edges = list(scheduling_edges().filter(downstream=asset))
    for edge in edges:
        edge.downstream = asset
    verdicts = judge(asset, edges, rows, made=made, now=now)
    due = [verdict.row for verdict in verdicts if verdict.is_due]
    planned: list[PlannedRun] = list(
        planned_runs(terms_of(touched.schedule, asset, Trigger.UPSTREAM), due)
    )
    claimed, held = claim_all(planned)
    mark_due_again(held)
    return len(claimed)


def _capped(
    asset: Asset, partitions: slicewise.PartitionSet, now: datetime
) -> slicewise.PartitionSet:
    """The newest of them, as many as one write may queue; what is left out is on record."""
    most = settings.MAX_PARTITIONS_PER_TICK
    if len(partitions) <= most:
        return partitions
    left_out = partitions[: len(partitions) - most]
    record_left_out(asset, left_out, queued=most, now=now)
    return partitions[len(partitions) - most :]

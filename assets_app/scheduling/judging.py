"""Schedules by assets: a recorded run, or a write told of, makes due what waited for it (AIP-75,
AIP-76).
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial, reduce
from operator import attrgetter, or_
from typing import NamedTuple

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q, QuerySet

import slicewise
from assets_app.execution.claims import (
    ClaimedPartition,
    HeldPartition,
    PlannedRun,
    claim_all,
)
from assets_app.execution.messages import nudge_dispatch
from assets_app.models import (
    DISCOVERY,
    Asset,
    AssetDependency,
    Outbox,
    Run,
    Schedule,
    Trigger,
    WriteReport,
)
from assets_app.scheduling.affected import Made, Write, affected
from assets_app.scheduling.apart import apart, in_halves
from assets_app.scheduling.failures import (
    FIRST_PAUSE,
    forget_failures,
    pause_after,
    record_failures,
)
from assets_app.scheduling.planning import planned_runs, terms_of
from assets_app.scheduling.readiness import Verdict, judge
from assets_app.scheduling.recording import record_left_out
from assets_app.scheduling.slices import (
    LOOK_AGAIN,
    SlicesLocked,
    mark_due_again,
    mark_due_later,
    refuse_locked,
)
from assets_app.scheduling.tick_terms import TickTerms, tick_terms
from slicewise.rows import PartitionRow, partition_rows

_RUNS_AT_ONCE = 200
# Among these, entries that failed before.
_RETRIED_AT_ONCE = 100

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

# Schedules that have entries of their own and of which no pause goes on. Each is found by a step
# along the index, however many entries it has.
_READY = """
WITH RECURSIVE kept AS (
    SELECT min(schedule_id) AS id FROM assets_app_outbox
    UNION ALL
    SELECT (SELECT min(schedule_id) FROM assets_app_outbox WHERE schedule_id > kept.id)
    FROM kept WHERE kept.id IS NOT NULL
)
SELECT schedule.id FROM kept JOIN assets_app_schedule AS schedule ON schedule.id = kept.id
WHERE schedule.retry_at IS NULL OR schedule.retry_at <= %s
"""

log = logging.getLogger(__name__)


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
    """Queue what the runs and reports in the outbox have made due; how many were looked at.

    New entries, and those that failed before and whose pause is over, each have a share of every
    look, so that neither kind keeps the other waiting.
    """
    if not Outbox.objects.exists():
        return 0
    # Of what is kept for schedules that pause nothing is read.
    new = Outbox.objects.filter(schedule=None, not_before=None).order_by("id")
    again = Outbox.objects.filter(not_before__lte=now).order_by("not_before", "id")
    again = again.filter(Q(schedule=None) | Q(schedule__in=_ready_schedules(now)))
    if not new.exists() and not again.exists():
        return 0
    with transaction.atomic():
        entries = list(again.select_for_update(skip_locked=True)[:_RETRIED_AT_ONCE])
        room = _RUNS_AT_ONCE - len(entries)
        entries += new.select_for_update(skip_locked=True)[:room]
        # By the order of ids, in which there is room for the first ones.
        entries.sort(key=attrgetter("id"))
        entries = _affordable(entries)
        for entry, error in in_halves(entries, partial(_judge_entries, now=now)):
            _put_off(entry, error, now)
        nudge_dispatch()
    return len(entries)


def _ready_schedules(now: datetime) -> list[int]:
    """Return the ids of schedules that entries are kept for and that may be tried now."""
    with connection.cursor() as cursor:
        cursor.execute(_READY, [now])
        return [schedule_id for (schedule_id,) in cursor.fetchall()]


def _affordable(entries: Sequence[Outbox]) -> list[Outbox]:
    """The first entries, up to the partitions that one transaction has room for; one at least. The
    others are next.
    """
    runs = _sizes(Run, (entry.run_id for entry in entries))
    reports = _sizes(WriteReport, (entry.report_id for entry in entries))
    room = settings.MAX_PARTITIONS_PER_TRANSACTION
    for place, entry in enumerate(entries):
        room -= runs.get(entry.run_id, 0) + reports.get(entry.report_id, 0)
        if room < 0:
            return list(entries[: max(place, 1)])
    return list(entries)


def _sizes(model: type[Run | WriteReport], ids: Iterable[int | None]) -> dict[int | None, int]:
    rows = model.objects.filter(pk__in={pk for pk in ids if pk is not None})
    return dict(rows.values_list("pk", "partition_count"))


def _judge_entries(entries: Sequence[Outbox], *, now: datetime) -> None:
    """Judge what follows the entries, and keep those of them for a schedule that failed, or whose
    slices somebody has locked.

    The schedule says when it is tried again: an entry that is kept for it is not written once more.
    """
    # First, so that whoever records another part of such a run waits, and enters it again.
    Outbox.objects.filter(pk__in=[row.pk for row in entries if row.schedule_id is None]).delete()
    made = _made_by(entries)
    errors: dict[int, Exception] = {}
    locked: set[int] = set()
    unjudged: list[tuple[Schedule, set[Write]]] = []
    for follower in _followers(made):
        schedule = follower.schedule
        concerned = _concerning(follower, entries, made)
        if not concerned:
            continue
        if schedule.retry_at is None or schedule.retry_at <= now:
            with apart(follower.asset) as outcome:
                _judge(follower, concerned, now)
            if outcome.error is None:
                forget_failures([schedule])
                continue
            if isinstance(outcome.error, SlicesLocked):
                locked.add(schedule.pk)
            else:
                errors[schedule.pk] = outcome.error
        unjudged.append((schedule, {piece.write for piece in concerned}))
    retried_at = record_failures(errors, now)
    # What does not stand in the row of a schedule, be it that somebody else has that, its entries
    # keep.
    apart_from_it = dict.fromkeys(locked, now + LOOK_AGAIN)
    apart_from_it |= dict.fromkeys(errors.keys() - retried_at.keys(), now + FIRST_PAUSE)
    _keep(entries, unjudged, retried_at | apart_from_it, rewritten=apart_from_it.keys())


def _keep(
    entries: Sequence[Outbox],
    unjudged: Sequence[tuple[Schedule, set[Write]]],
    retried_at: Mapping[int, datetime],
    *,
    rewritten: Collection[int],
) -> None:
    """Have an entry for each write that is not judged for a schedule, and remove those of schedules
    that have been judged. Of what is there those of the ``rewritten`` schedules are changed.
    """
    wanted = {(schedule.pk, write) for schedule, writes in unjudged for write in writes}
    own = {
        (row.schedule_id, (row.run_id, row.report_id)): row for row in entries if row.schedule_id
    }
    done = [row.pk for key, row in own.items() if key not in wanted]
    if done:
        Outbox.objects.filter(pk__in=done).delete()
    for schedule_id in sorted(rewritten):
        rows = [row.pk for key, row in own.items() if key in wanted and key[0] == schedule_id]
        Outbox.objects.filter(pk__in=rows).update(not_before=retried_at[schedule_id])
    # One that another transaction judges is waited for: it has not seen all of that run, perhaps.
    Outbox.objects.bulk_create(
        [
            Outbox(
                run_id=run_id,
                report_id=report_id,
                schedule=schedule,
                not_before=retried_at.get(schedule.pk) or schedule.retry_at,
            )
            for schedule, writes in unjudged
            for run_id, report_id in sorted(writes, key=repr)
            if (schedule.pk, (run_id, report_id)) not in own
        ],
        update_conflicts=True,
        unique_fields=["run", "report", "schedule"],
        update_fields=["not_before"],
    )


def _concerning(follower: _Follower, entries: Sequence[Outbox], made: Sequence[Made]) -> list[Made]:
    """Return what was made upstream of the follower by entries that are to be judged for it."""
    writes = {
        (entry.run_id, entry.report_id)
        for entry in entries
        if entry.schedule_id in (None, follower.schedule.pk)
    }
    upstream_ids = {edge.upstream_id for edge in follower.edges}
    return [piece for piece in made if piece.write in writes and piece.asset_id in upstream_ids]


def _put_off(entry: Outbox, error: Exception, now: datetime) -> None:
    """Keep an entry that cannot even be read: no schedule is at fault."""
    log.error(
        "an entry of the outbox could not be read", extra={"entry": str(entry)}, exc_info=error
    )
    entry.failures += 1
    entry.not_before = now + pause_after(entry.failures)
    entry.save(update_fields=["failures", "not_before"])


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
        # One that its function makes no more is in force as long as its own file is broken.
        if producer is None or edge.downstream.name not in producer.outlet_names:
            continue
        if schedule is None or schedule.rule is None or edge.downstream.paused:
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
        touched = Touched(follower.schedule, asset, partitions)
        queue_due(touched, _names(made), now, _first(made))
        return
    for pieces in _by_write(made):
        one = _capped(asset, _touched(follower, asset, pieces, now), now)
        # What an earlier one has queued is not to come due again.
        touched = Touched(follower.schedule, asset, one & partitions)
        queue_due(touched, _names(pieces), now, _first(pieces))
        partitions -= one


def _by_write(made: Sequence[Made]) -> Iterable[list[Made]]:
    writes: dict[object, list[Made]] = {}
    for piece in made:
        writes.setdefault(piece.write, []).append(piece)
    return writes.values()


def _first(made: Sequence[Made]) -> datetime:
    """Return when the first of the writes was recorded: a tick that came before they are judged has
    found them there.
    """
    return min(piece.at for piece in made)


def _names(made: Sequence[Made]) -> set[tuple[int, str]]:
    return {(piece.asset_id, piece.key) for piece in made}


def _touched(
    follower: _Follower, asset: Asset, made: Sequence[Made], now: datetime
) -> slicewise.PartitionSet:
    schedule = follower.schedule
    # The ticks of its times have moved on how far it is handled.
    since = schedule.began_at if schedule.joins_times else schedule.handled_until
    found: list[slicewise.PartitionSet] = []
    for edge in follower.edges:
        edge.downstream = asset
        pieces = [piece for piece in made if piece.asset_id == edge.upstream_id]
        found.append(affected(edge, pieces, since=since, now=now))
    return reduce(or_, found)


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

"""Ticks of schedules by time: every partition that ended since the last tick is due (AIP-76)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import connection, transaction

from assets_app.catalogue.timetables import time_rule
from assets_app.execution.claims import PlannedRun, claim_all
from assets_app.execution.messages import nudge_dispatch
from assets_app.models import Asset, Schedule, Trigger
from assets_app.scheduling.planning import planned_runs, terms_of, version_in_force
from assets_app.scheduling.recording import TickResult, record_ticks
from assets_app.scheduling.slices import SliceFacts, mark_due_again, pass_over, slice_facts
from slicewise.due import before, ended_between, latest
from slicewise.partition_set import PartitionSet
from slicewise.rows import PartitionRow, partition_rows
from slicewise.time_rules import TimeRule

_TICK_LOCK = 7_304
_AT_ONCE = 2_000
# Of thousands, Django's own bulk_update takes several seconds.
_GO_ON = """
UPDATE assets_app_schedule AS schedule SET handled_until = handled.until, next_at = handled.next_at
FROM unnest(%s::bigint[], %s::timestamptz[], %s::timestamptz[]) AS handled(id, until, next_at)
WHERE schedule.id = handled.id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tick:
    """One tick of one schedule, and the partitions of one asset that it is about."""

    schedule: Schedule
    rule: TimeRule
    at: datetime
    # Up to then windows are seen to: before `at` where more ended than one tick makes.
    until: datetime
    asset: Asset
    due: Sequence[PartitionRow]
    passed_over: Sequence[PartitionRow]
    # The last few before those that are due, to be made again where they are there.
    refreshed: Sequence[PartitionRow]


def handle_ticks(now: datetime) -> int:
    """Queue what the ticks up to now make; how many schedules ticked.

    One at a time: others return at once. Without a tick it is one look at an index.
    """
    if not Schedule.objects.filter(next_at__lte=now).exists():
        return 0
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_TICK_LOCK])
        if not cursor.fetchone()[0]:
            return 0
        schedules = (
            Schedule.objects.select_for_update(of=("self",))
            .select_related("producer__current_version", "group")
            .prefetch_related("producer__assets__partition_definition")
            .filter(next_at__lte=now)
            .order_by("next_at", "id")[:_AT_ONCE]
        )
        ticks = [tick for schedule in schedules for tick in _ticks(schedule, now)]
        _queue(ticks)
        nudge_dispatch()
        return len(ticks)


def _ticks(schedule: Schedule, now: datetime) -> Iterator[_Tick]:
    rule = time_rule(schedule.rule or {})
    at = rule.last_until(now)
    asset = _asked_of(schedule)
    if at is not None and asset is not None:
        yield _tick(schedule, rule, at, asset)


def _asked_of(schedule: Schedule) -> Asset | None:
    """The asset that a tick asks for: of those that are made together one, with which the others
    come; of one whose partitions are found at run time a run that finds some.
    """
    declared = [asset for asset in schedule.producer.assets.all() if asset.active]
    if not declared:
        return None
    asset = min(declared, key=lambda one: one.pk)
    return asset.discovering if asset.finds_partitions else asset


def _tick(schedule: Schedule, rule: TimeRule, at: datetime, asset: Asset) -> _Tick:
    options = version_in_force(schedule).definition
    definition, until = asset.definition, at
    due: PartitionSet | None = None
    if definition is not None:
        due = ended_between(definition, schedule.handled_until, at)
        if len(due) > settings.MAX_PARTITIONS_PER_TICK:
            due, until = _cut(due, at)
    wanted = latest(due) if due and options.get("pending") == "latest" else due
    again: PartitionSet | None = None
    if definition is not None and due and due.hull is not None and options.get("refresh"):
        again = before(definition, due.hull.start, options["refresh"])
    return _Tick(
        schedule=schedule,
        rule=rule,
        at=at,
        until=until,
        asset=asset,
        due=list(partition_rows(definition, wanted)),
        passed_over=[] if due is None or wanted is None else _rows(due - wanted),
        refreshed=[] if again is None else _rows(again),
    )


def _rows(partitions: PartitionSet) -> list[PartitionRow]:
    return list(partition_rows(partitions.definition, partitions))


def _cut(due: PartitionSet, at: datetime) -> tuple[PartitionSet, datetime]:
    """As many of the first windows as one tick makes, and when the last of them ends.

    The rest is for the next ticks, at once: nothing is lost.
    """
    width = due.space.segments.count
    most = max(settings.MAX_PARTITIONS_PER_TICK // width, 1) * width
    if due.hull is None or len(due) <= most:
        return due, at
    first = due[:most]
    return first, at if first.hull is None else first.hull.end


def _queue(ticks: Sequence[_Tick]) -> None:
    facts = slice_facts(
        (tick.asset, [row.key for row in (*tick.due, *tick.refreshed)]) for tick in ticks
    )
    results = [_result(tick, facts) for tick in ticks]
    planned: list[PlannedRun] = []
    for tick, result in zip(ticks, results, strict=True):
        terms = terms_of(tick.schedule, tick.asset, Trigger.SCHEDULE)
        planned += planned_runs(terms, result.wanted)
    _, held = claim_all(planned)
    mark_due_again(held)
    pass_over([(tick.asset, row) for tick in ticks for row in tick.passed_over])
    blocked = Counter(partition.terms.asset.pk for partition in held)
    for tick, result in zip(ticks, results, strict=True):
        result.in_flight = blocked[tick.asset.pk]
    record_ticks(results)
    _go_on(ticks)


def _result(tick: _Tick, facts: SliceFacts) -> TickResult:
    """What the tick makes: all that is due and not there, and what is to be refreshed."""
    lacking = [row for row in tick.due if not _is_there(tick, row, facts)]
    again = [row for row in tick.refreshed if facts.version(tick.asset, row.key)]
    return TickResult(
        schedule=tick.schedule,
        at=tick.at,
        count=max(1, tick.rule.count(tick.schedule.handled_until, tick.at)),
        wanted=[*again, *lacking],
        existing=len(tick.due) - len(lacking),
        passed_over=len(tick.passed_over),
    )


def _is_there(tick: _Tick, row: PartitionRow, facts: SliceFacts) -> bool:
    """Made by hand or by a backfill already. What has no window of its own is made again at each
    tick, unless that was done since the tick before.
    """
    if row.end is not None:
        return facts.version(tick.asset, row.key) > 0
    made = facts.materialized_at(tick.asset, row.key)
    return made is not None and made > tick.schedule.handled_until


def _go_on(ticks: Sequence[_Tick]) -> None:
    """Every schedule's next tick; one that was cut short ticks again at once."""
    handled = {tick.schedule.pk: tick for tick in ticks}
    following = [
        tick.at if tick.until < tick.at else tick.rule.next_after(tick.at)
        for tick in handled.values()
    ]
    with connection.cursor() as cursor:
        until = [tick.until for tick in handled.values()]
        cursor.execute(_GO_ON, [list(handled), until, following])

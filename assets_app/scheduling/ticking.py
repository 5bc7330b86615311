"""Ticks of schedules by time: every partition that ended since the last tick is due (AIP-76).

What joins times and assets ticks in `joined_ticks`.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.conf import settings
from django.db import Error, connection, transaction

from assets_app.execution.claims import PlannedRun, claim_all
from assets_app.execution.messages import nudge_dispatch
from assets_app.models import Asset, Schedule, Trigger
from assets_app.scheduling.apart import in_halves
from assets_app.scheduling.ended import Ended, EndedPartitions, Terms, rule_text
from assets_app.scheduling.failures import forget_failures, record_failures
from assets_app.scheduling.joined_ticks import handle_joined_ticks
from assets_app.scheduling.planning import planned_runs, terms_of, version_in_force
from assets_app.scheduling.recording import (
    TickResult,
    number_ticks,
    record_left_out,
    record_ticks,
)
from assets_app.scheduling.slices import (
    LOOK_AGAIN,
    SliceFacts,
    locked_assets,
    mark_due_again,
    pass_over,
    slice_facts,
)
from partitions_app.models import PartitionDefinition
from slicewise.rows import PartitionRow

_TICK_LOCK = 7_304
_AT_ONCE = 2_000
# Of thousands, Django's own bulk_update takes several seconds.
_GO_ON = """
UPDATE assets_app_schedule AS schedule SET handled_until = handled.until, next_at = handled.next_at
FROM unnest(%s::bigint[], %s::timestamptz[], %s::timestamptz[]) AS handled(id, until, next_at)
WHERE schedule.id = handled.id
"""
# What a tick reads of the rows of a schedule, and no more: there may be ten thousand of them.
_READ = (
    "rule",
    "handled_until",
    "failures",
    "producer__name",
    "producer__current_version__definition",
    "producer__current_version__producer_id",
    "group__queue",
)

log = logging.getLogger(__name__)

Errors = dict[int, Exception]
"""Why schedules could not be seen to, by their ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tick:
    """One tick of one schedule, and the partitions of one asset that it is about."""

    schedule: Schedule
    asset: Asset
    ended: Ended

    @property
    def partition_count(self) -> int:
        """How many partitions are looked at, or written down."""
        ended = self.ended
        return len(ended.due) + len(ended.refreshed) + len(ended.passed_over)


def handle_ticks(now: datetime) -> int:
    """Queue what the ticks up to now make; how many schedules ticked.

    Without a tick it is one look at an index.
    """
    kinds = Schedule.objects.filter(next_at__lte=now).values_list("by_time", flat=True).distinct()
    due = set(kinds)
    ticked = _handle_times(now) if True in due else 0
    return ticked + (handle_joined_ticks(now) if False in due else 0)


def _handle_times(now: datetime) -> int:
    """Handle the ticks of schedules by time. One at a time: others return at once. Schedules that
    are being changed are left to the next beat.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_TICK_LOCK])
        if not cursor.fetchone()[0]:
            return 0
        schedules = list(
            Schedule.objects.select_for_update(of=("self",), skip_locked=True)
            .select_related("producer__current_version", "group")
            .only(*_READ)
            .filter(next_at__lte=now, by_time=True)
            .order_by("next_at", "id")[:_AT_ONCE]
        )
        ticks, errors = _ticks(schedules, now)
        handled: set[int] = set()
        failed = in_halves(ticks, partial(_queue, now=now, handled=handled))
        errors |= {tick.schedule.pk: error for tick, error in failed}
        # They keep no other from its ticks, and what ended meanwhile is not lost.
        record_failures(errors, now, is_tick=True)
        forget_failures(tick.schedule for tick in ticks if tick.schedule.pk in handled)
        nudge_dispatch()
        return len(handled)


def _ticks(schedules: Sequence[Schedule], now: datetime) -> tuple[list[_Tick], Errors]:
    """Return the ticks of the first schedules, up to the partitions that one transaction has room
    for, in the order of the slices that they claim; and why others could not be read.

    The schedules that are left tick in the next transaction: they stay due.
    """
    asked, ended, errors = _asked_of(schedules), EndedPartitions(now), Errors()
    _stop(asset for asset in asked.values() if asset.paused)
    ticks: list[_Tick] = []
    room = settings.MAX_PARTITIONS_PER_TRANSACTION
    for schedule in schedules:
        asset = asked.get(schedule.producer_id)
        if asset is not None and asset.paused:
            continue
        try:
            tick = _tick(schedule, asset, ended)
        except Error:
            raise
        except Exception as error:
            # A kind of rule, say, of a package that is not installed here any more.
            log.exception(
                "a schedule could not be read", extra={"producer": schedule.producer.name}
            )
            errors[schedule.pk] = error
            continue
        if tick is None:
            continue
        room -= tick.partition_count
        if room < 0 and ticks:
            break
        ticks.append(tick)
    return sorted(ticks, key=lambda tick: tick.asset.pk), errors


def _tick(schedule: Schedule, asset: Asset | None, ended: EndedPartitions) -> _Tick | None:
    if asset is None:
        raise LookupError("no asset is declared that it makes")
    partitions = ended.of(_terms(schedule, asset), asset.definition)
    if partitions is None:
        return None
    return _Tick(schedule=schedule, asset=asset, ended=partitions)


def _stop(paused: Iterable[Asset]) -> None:
    """They were paused before their schedules were there: without ticks, as all that are paused."""
    if producers := [asset.producer_id for asset in paused]:
        Schedule.objects.filter(producer__in=producers).update(next_at=None)


def _asked_of(schedules: Sequence[Schedule]) -> dict[int, Asset]:
    """The assets that ticks ask for, by their producers: of those that are made together one, with
    which the others come, a paused one if there is any; of one whose partitions are found at run
    time a run that finds some.
    """
    producers = {schedule.producer_id: schedule.producer for schedule in schedules}
    declared = (
        Asset.objects.filter(producer__in=producers, active=True)
        .only("name", "producer_id", "partition_definition_id", "paused")
        .order_by("producer_id", "-paused", "id")
    )
    asked: dict[int, Asset] = {}
    for asset in declared:
        producer = producers[asset.producer_id or 0]
        # One that its function makes no more is in force as long as its own file is broken.
        if asset.name in producer.outlet_names:
            asked.setdefault(producer.pk, asset)
    # Many assets share one rule, which is read once.
    rules = PartitionDefinition.objects.in_bulk(
        {pk for asset in asked.values() if (pk := asset.partition_definition_id) is not None}
    )
    for asset in asked.values():
        if asset.partition_definition_id is not None:
            asset.partition_definition = rules[asset.partition_definition_id]
    return {
        pk: asset.discovering if asset.finds_partitions else asset for pk, asset in asked.items()
    }


def _terms(schedule: Schedule, asset: Asset) -> Terms:
    options = version_in_force(schedule).definition
    row = None if asset.is_discovering else asset.partition_definition
    return Terms(
        rule=rule_text(schedule.rule or {}),
        since=schedule.handled_until,
        definition=() if row is None else (row.fingerprint, str(row.revision)),
        pending=options.get("pending"),
        refresh=options.get("refresh") or 0,
    )


def _queue(ticks: Sequence[_Tick], *, now: datetime, handled: set[int]) -> None:
    """Queue what the ticks make, and add their schedules to those that are handled."""
    if not (ticks := _unlocked(ticks, now)):
        return
    facts = slice_facts(
        (tick.asset, [row.key for row in (*tick.ended.due, *tick.ended.refreshed)])
        for tick in ticks
    )
    results = [_result(tick, facts) for tick in ticks]
    if any(result.wanted for result in results):
        number_ticks(results)
    planned: list[PlannedRun] = []
    for tick, result in zip(ticks, results, strict=True):
        terms = terms_of(tick.schedule, tick.asset, Trigger.SCHEDULE, tick_id=result.pk)
        planned += planned_runs(terms, result.wanted)
    _, held = claim_all(planned)
    mark_due_again(held)
    pass_over([(tick.asset, row) for tick in ticks for row in tick.ended.passed_over])
    blocked = Counter(partition.terms.asset.pk for partition in held)
    for tick, result in zip(ticks, results, strict=True):
        result.in_flight = blocked[tick.asset.pk]
    record_ticks(results)
    for tick in ticks:
        if tick.ended.left_out is not None:
            queued = len(tick.ended.refreshed)
            record_left_out(tick.asset, tick.ended.left_out, queued=queued, now=now)
    _go_on(ticks)
    handled.update(tick.schedule.pk for tick in ticks)


def _unlocked(ticks: Sequence[_Tick], now: datetime) -> list[_Tick]:
    """Return the ticks that wait for nobody. Those of which another transaction has locked a slice
    are put off, and the partitions that have ended stay due.
    """
    locked = locked_assets((tick.asset, tick.ended.keys) for tick in ticks)
    late = [tick.schedule.pk for tick in ticks if tick.asset.pk in locked]
    if late:
        Schedule.objects.filter(pk__in=late).update(next_at=now + LOOK_AGAIN)
    return [tick for tick in ticks if tick.asset.pk not in locked]


def _result(tick: _Tick, facts: SliceFacts) -> TickResult:
    """What the tick makes: all that is due and not there, and what is to be refreshed."""
    ended = tick.ended
    lacking = [row for row in ended.due if not _is_there(tick, row, facts)]
    again = [row for row in ended.refreshed if facts.version(tick.asset, row.key)]
    return TickResult(
        schedule=tick.schedule,
        at=ended.at,
        count=ended.count,
        wanted=[*again, *lacking],
        existing=len(ended.due) - len(lacking),
        passed_over=len(ended.passed_over),
    )


def _is_there(tick: _Tick, row: PartitionRow, facts: SliceFacts) -> bool:
    """Return whether the tick leaves a partition out.

    A window is made once. For anything else each tick is a new occasion: only a run that no tick
    asked for, begun since the tick before, spares this one. A run that looks for partitions is
    never left out: the keys that are known say nothing of new ones.
    """
    if row.end is not None:
        return facts.version(tick.asset, row.key) > 0
    if tick.asset.is_discovering:
        return False
    began_at = facts.made_otherwise_at(tick.asset, row.key)
    return began_at is not None and began_at > tick.schedule.handled_until


def _go_on(ticks: Sequence[_Tick]) -> None:
    """Every schedule's next tick."""
    with connection.cursor() as cursor:
        ended = [tick.ended for tick in ticks]
        columns = [one.until for one in ended], [one.next_at for one in ended]
        cursor.execute(_GO_ON, [[tick.schedule.pk for tick in ticks], *columns])

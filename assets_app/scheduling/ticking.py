"""Ticks of schedules by time: every partition that ended since the last tick is due (AIP-76)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.db import Error, connection, transaction

from assets_app.execution.claims import PlannedRun, claim_all
from assets_app.execution.messages import nudge_dispatch
from assets_app.models import Asset, Schedule, Trigger
from assets_app.scheduling.ended import Ended, EndedPartitions, Terms, rule_text
from assets_app.scheduling.planning import planned_runs, terms_of, version_in_force
from assets_app.scheduling.recording import TickResult, number_ticks, record_ticks
from assets_app.scheduling.slices import SliceFacts, mark_due_again, pass_over, slice_facts
from partitions_app.models import PartitionDefinition
from slicewise.rows import PartitionRow

_TICK_LOCK = 7_304
_AT_ONCE = 2_000
_PUT_OFF = timedelta(minutes=1)
# Of thousands, Django's own bulk_update takes several seconds.
_GO_ON = """
UPDATE assets_app_schedule AS schedule SET handled_until = handled.until, next_at = handled.next_at
FROM unnest(%s::bigint[], %s::timestamptz[], %s::timestamptz[]) AS handled(id, until, next_at)
WHERE schedule.id = handled.id
"""
# What a tick reads of the rows of a schedule, and no more: there may be ten thousand of them.
_READ = ("rule", "handled_until", "producer__current_version__definition", "group__queue")

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tick:
    """One tick of one schedule, and the partitions of one asset that it is about."""

    schedule: Schedule
    asset: Asset
    ended: Ended


def handle_ticks(now: datetime) -> int:
    """Queue what the ticks up to now make; how many schedules ticked.

    One at a time: others return at once. Schedules that are being changed are left to the next
    beat. Without a tick it is one look at an index.
    """
    if not Schedule.objects.filter(next_at__lte=now).exists():
        return 0
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_TICK_LOCK])
        if not cursor.fetchone()[0]:
            return 0
        schedules = list(
            Schedule.objects.select_for_update(of=("self",), skip_locked=True)
            .select_related("producer__current_version", "group")
            .only(*_READ)
            .filter(next_at__lte=now)
            .order_by("next_at", "id")[:_AT_ONCE]
        )
        ticks = list(_ticks(schedules, now))
        _queue(ticks)
        nudge_dispatch()
        return len(ticks)


def _ticks(schedules: Sequence[Schedule], now: datetime) -> Iterator[_Tick]:
    asked, ended = _asked_of(schedules), EndedPartitions(now)
    _stop(asset for asset in asked.values() if asset.paused)
    unreadable: list[int] = []
    for schedule in schedules:
        asset = asked.get(schedule.producer_id)
        if asset is None or asset.paused:
            continue
        try:
            found = ended.of(_terms(schedule, asset), asset.definition)
        except Error:
            raise
        except Exception:
            # A kind of rule, say, of a package that is not installed here any more.
            log.exception("the tick of an asset could not be read", asset=asset.name)
            unreadable.append(schedule.pk)
            continue
        if found is not None:
            yield _Tick(schedule=schedule, asset=asset, ended=found)
    _put_off(unreadable, now)


def _put_off(unreadable: Sequence[int], now: datetime) -> None:
    """They keep no other from its ticks. What ended is seen to once they can be read again."""
    if unreadable:
        Schedule.objects.filter(pk__in=unreadable).update(next_at=now + _PUT_OFF)


def _stop(paused: Iterable[Asset]) -> None:
    """They were paused before their schedules were there: without ticks, as all that are paused."""
    if producers := [asset.producer_id for asset in paused]:
        Schedule.objects.filter(producer__in=producers).update(next_at=None)


def _asked_of(schedules: Sequence[Schedule]) -> dict[int | None, Asset]:
    """The assets that ticks ask for, by their producers: of those that are made together one, with
    which the others come, a paused one if there is any; of one whose partitions are found at run
    time a run that finds some.
    """
    producer_ids = [schedule.producer_id for schedule in schedules]
    assets = list(
        Asset.objects.filter(producer__in=producer_ids, active=True)
        .only("name", "producer_id", "partition_definition_id", "paused")
        .order_by("producer_id", "-paused", "id")
        .distinct("producer_id")
    )
    # Many assets share one rule, which is read once.
    rules = PartitionDefinition.objects.in_bulk(
        {pk for asset in assets if (pk := asset.partition_definition_id) is not None}
    )
    for asset in assets:
        if asset.partition_definition_id is not None:
            asset.partition_definition = rules[asset.partition_definition_id]
    return {
        asset.producer_id: asset.discovering if asset.finds_partitions else asset
        for asset in assets
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


def _queue(ticks: Sequence[_Tick]) -> None:
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
    _go_on(ticks)


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
    """Made by hand or by a backfill already. What has no window of its own is made again at each
    tick, unless that was done since the tick before.
    """
    if row.end is not None:
        return facts.version(tick.asset, row.key) > 0
    made = facts.materialized_at(tick.asset, row.key)
    return made is not None and made > tick.schedule.handled_until


def _go_on(ticks: Sequence[_Tick]) -> None:
    """Every schedule's next tick."""
    with connection.cursor() as cursor:
        ended = [tick.ended for tick in ticks]
        columns = [one.until for one in ended], [one.next_at for one in ended]
        cursor.execute(_GO_ON, [[tick.schedule.pk for tick in ticks], *columns])

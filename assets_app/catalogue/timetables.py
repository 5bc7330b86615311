"""Keeps the schedules of producers in step with what their versions in force say."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef

from assets_app.models import Asset, Bundle, GroupKind, Producer, Queue, RunGroup, Schedule
from slicewise.time_rules import TimeRule

_BY_TIME = ("cron", "timedelta")
_COLUMNS = ("rule", "by_time", "next_at", "handled_until")
_AT_ONCE = 1_000


def time_rule(rule: Mapping[str, Any]) -> TimeRule:
    """The ticks of a schedule by time, from what `Schedule.rule` holds."""
    return TimeRule.from_json(
        rule["schedule"],
        timezone=rule.get("timezone"),
        start=rule.get("start"),
        end=rule.get("end"),
    )


def store_schedules(producers: Iterable[Producer], *, now: datetime) -> None:
    """Bring the schedules of these producers up to date; in a transaction of the caller's.

    A new one begins now. A changed one goes on from where the old one was, if that still ticked:
    nothing that ended meanwhile is lost.
    """
    producers = list(producers)
    rows = _locked_rows(producers)
    before = {pk: _columns(row) for pk, row in rows.items()}
    rules = {producer.pk: _rule_of(producer) for producer in producers}
    rows |= _new_rows([one for one in producers if one.pk not in rows and rules[one.pk][0]], now)
    # Only now: whoever pauses one of them has done so, or waits for what is locked here.
    paused = _paused_producers(producers)
    for pk, row in rows.items():
        _change(row, rules[pk][0], is_paused=pk in paused, now=now)
    Schedule.objects.bulk_create([row for row in rows.values() if row.pk is None])
    changed = [row for pk, row in rows.items() if pk in before and _columns(row) != before[pk]]
    Schedule.objects.bulk_update(changed, _COLUMNS, batch_size=_AT_ONCE)
    _update_groups((row.group, rules[pk][1]) for pk, row in rows.items())


def _locked_rows(producers: Sequence[Producer]) -> dict[int, Schedule]:
    """As they are to stay until this is written: ticks and people change them, too."""
    rows = Schedule.objects.select_for_update(of=("self",)).select_related("group")
    return {row.producer_id: row for row in rows.filter(producer__in=producers).order_by("pk")}


def _change(row: Schedule, rule: dict[str, Any] | None, *, is_paused: bool, now: datetime) -> None:
    if rule != row.rule:
        by_time = rule is not None and rule["schedule"]["kind"] in _BY_TIME
        # Without a tick nothing was handled meanwhile, and nothing that ended is due: there is no
        # catch-up.
        ticked = row.by_time and (is_paused or row.next_at is not None)
        if row.rule is None or (by_time and not ticked):
            row.handled_until = now
        row.rule, row.by_time = rule, by_time
    row.next_at = _next_at(row, is_paused=is_paused)


def _new_rows(producers: Sequence[Producer], now: datetime) -> dict[int, Schedule]:
    """Schedules that are not stored yet, each with a group that is."""
    groups = RunGroup.objects.bulk_create(
        RunGroup(kind=GroupKind.SCHEDULE, label=producer.name[:300], queue=Queue.SCHEDULED)
        for producer in producers
    )
    return {
        producer.pk: Schedule(producer=producer, group=group, handled_until=now)
        for producer, group in zip(producers, groups, strict=True)
    }


def _columns(row: Schedule) -> list[Any]:
    return [getattr(row, name) for name in _COLUMNS]


def pause_schedule(asset: Asset, *, paused: bool, now: datetime) -> None:
    """Stop the ticks of what makes the asset, or let them go on from now: no catch-up."""
    row = Schedule.objects.select_for_update().filter(producer=asset.producer_id).first()
    if row is None:
        return
    if not paused:
        row.handled_until = now
    row.next_at = _next_at(row, is_paused=paused)
    row.save(update_fields=["next_at", "handled_until"])


def stop_schedules(bundle: Bundle) -> None:
    """Producers of which no file declares an asset any more tick no more."""
    declared = Asset.objects.filter(producer=OuterRef("producer"), active=True)
    rows = Schedule.objects.filter(producer__bundle=bundle).exclude(rule=None)
    rows.filter(~Exists(declared)).update(next_at=None, rule=None)


def _next_at(row: Schedule, *, is_paused: bool) -> datetime | None:
    if is_paused or not row.by_time or row.rule is None:
        return None
    return time_rule(row.rule).next_after(row.handled_until)


def _rule_of(producer: Producer) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    version = producer.current_version
    definition: dict[str, Any] = {} if version is None else version.definition
    if not definition.get("schedule"):
        return None, definition
    rule = {
        "schedule": definition["schedule"],
        "timezone": definition.get("timezone"),
        "start": definition.get("start_date"),
        "end": definition.get("end_date"),
    }
    return rule, definition


def _paused_producers(producers: Iterable[Producer]) -> set[int]:
    paused = Asset.objects.filter(producer__in=producers, paused=True)
    return {pk for pk in paused.values_list("producer_id", flat=True) if pk is not None}


def _update_groups(asked: Iterable[tuple[RunGroup, Mapping[str, Any]]]) -> None:
    changed = []
    for group, definition in asked:
        wanted = (definition.get("priority") or 0, definition.get("max_active_runs"))
        if (group.priority, group.max_active_runs) != wanted:
            group.priority, group.max_active_runs = wanted
            changed.append(group)
    RunGroup.objects.bulk_update(changed, ["priority", "max_active_runs"], batch_size=_AT_ONCE)

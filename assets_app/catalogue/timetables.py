"""Schedules of producers, kept in step with the versions in force."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet

from assets_app.models import (
    Asset,
    AssetPartition,
    Bundle,
    GroupKind,
    Outbox,
    Producer,
    Queue,
    RunGroup,
    Schedule,
)
from assets_app.queries import unevaluated_writes
from assets_app.queries.after_windows import windows_of
from assets_app.queries.missed_spans import spans_of
from assets_app.queries.schedule_ticks import next_tick
from assets_app.queries.time_rules import has_times, time_rule
from slicewise import DefinitionError
from slicewise.declaring import is_time

_PAUSE = (
    *("paused_at", "unpaused_at", "handled_before_pause", "unevaluated_since"),
    *("partitions_to_examine", "misses_since", "missed_spans"),
)
_COLUMNS = (*("rule", "by_time", "next_at", "handled_until", "began_at"), *_PAUSE, "retry_at")
_BATCH_SIZE = 1_000


class _Limits(NamedTuple):
    """The limits of a schedule's run group."""

    priority: int
    max_active_runs: int | None


# The value for `Schedule.rule`, and the limits of the runs.
_Rule = tuple[dict[str, Any] | None, _Limits]


def store_schedules(producers: Iterable[Producer], *, now: datetime) -> None:
    """Bring the schedules of these producers up to date; call in a transaction.

    A new schedule begins now. A changed schedule goes on from where the old one was, if that one
    still ticked: no partition that ended meanwhile is lost.
    """
    producers = list(producers)
    schedule_rules = {producer.pk: _rule_of(producer) for producer in producers}
    producers = _producers_to_update(producers, schedule_rules)
    rows = _locked_rows(producers)
    failing = [pk for pk, row in rows.items() if row.retry_at is not None]
    before = {pk: _columns(row) for pk, row in rows.items()}
    rows |= _new_rows(
        [
            producer
            for producer in producers
            if producer.pk not in rows and schedule_rules[producer.pk][0]
        ],
        now,
    )
    # Read only now: a transaction that pauses one of these assets has ended, or waits for the rows
    # that are locked here.
    paused = _paused_producers(producers)
    for pk, row in rows.items():
        _change(row, schedule_rules[pk][0], is_paused=pk in paused, now=now)
    Schedule.objects.bulk_create([row for row in rows.values() if row.pk is None])
    changed = [row for pk, row in rows.items() if pk in before and _columns(row) != before[pk]]
    Schedule.objects.bulk_update(changed, _COLUMNS, batch_size=_BATCH_SIZE)
    _update_groups((row.group, schedule_rules[pk][1]) for pk, row in rows.items())
    _retry_now(failing, now)


def _producers_to_update(
    producers: Sequence[Producer], schedule_rules: Mapping[int, _Rule]
) -> list[Producer]:
    """Return the producers whose schedule is to change: only the rows of these schedules are
    locked, and the other schedules tick on.

    No other process changes the columns compared here, except for failures and pauses: a schedule
    that fails or is paused from now on has the new version.
    """
    paused = Exists(_paused_assets().filter(producer=OuterRef("producer")))
    fields = (
        "rule",
        "retry_at",
        "paused_at",
        "unpaused_at",
        "group__priority",
        "group__max_active_runs",
    )
    stored = Schedule.objects.filter(producer__in=producers).values_list(
        "producer", paused, *fields
    )
    rows = {pk: columns for pk, *columns in stored}
    return [
        producer
        for producer in producers
        if (
            _is_out_of_step(rows[producer.pk], schedule_rules[producer.pk])
            if producer.pk in rows
            else schedule_rules[producer.pk][0] is not None
        )
    ]


def _is_out_of_step(columns: Sequence[Any], declared: _Rule) -> bool:
    is_paused, stored, retry_at, paused_at, unpaused_at, *limits = columns
    schedule_rule, declared_limits = declared
    return (
        stored != schedule_rule
        or retry_at is not None
        or is_paused != (paused_at is not None and unpaused_at is None)
        or tuple(limits) != declared_limits
    )


def _retry_now(producer_ids: Sequence[int], now: datetime) -> None:
    """Have writes and partitions that were put off with their schedules examined now. Partitions
    that wait for the end of a window go on waiting, and partitions of paused assets too.
    """
    if not producer_ids:
        return
    entries = Outbox.objects.filter(schedule__producer__in=producer_ids, not_before__gt=now)
    entries = entries.order_by("pk").select_for_update(of=("self",), skip_locked=True)
    entry_ids = list(entries.values_list("pk", flat=True))
    Outbox.objects.filter(pk__in=entry_ids).update(not_before=now)
    put_off = AssetPartition.objects.filter(
        Q(window_end=None) | Q(window_end__lte=now),
        asset__producer__in=producer_ids, asset__paused=False, due_again=True, due_at__gt=now,
    )  # fmt: skip
    rows = put_off.order_by("pk").select_for_update(of=("self",), skip_locked=True)
    AssetPartition.objects.filter(pk__in=list(rows.values_list("pk", flat=True))).update(due_at=now)


def _locked_rows(producers: Sequence[Producer]) -> dict[int, Schedule]:
    """Return the schedules of the producers by producer id, locked until the transaction ends,
    since ticks and people change the rows too.
    """
    rows = Schedule.objects.select_for_update(of=("self",), no_key=True).select_related("group")
    return {row.producer_id: row for row in rows.filter(producer__in=producers).order_by("pk")}


def _change(
    row: Schedule, schedule_rule: dict[str, Any] | None, *, is_paused: bool, now: datetime
) -> None:
    if schedule_rule != row.rule:
        _end_span(row, now)
        _carry_over(row, schedule_rule, now=now)
        row.rule, row.by_time = (
            schedule_rule,
            schedule_rule is not None and is_time(schedule_rule["schedule"]),
        )
        if row.is_in_pause and has_times(schedule_rule):
            row.misses_since = now
    # The asset was paused before it had a schedule, or a paused asset came to the function or left.
    if is_paused and not row.is_in_pause:
        _begin_pause(row, now)
    elif row.is_in_pause and not is_paused:
        _end_pause(row, now)
    row.next_at = _next_at(row, is_paused=is_paused)
    # New code may well repair the failure: the schedule is tried at once.
    row.retry_at = None


def _carry_over(row: Schedule, schedule_rule: dict[str, Any] | None, *, now: datetime) -> None:
    """Set from when on ended partitions are due by a changed rule: from where the old rule was."""
    had_times = row.by_time or row.joins_times
    if row.rule is None or (
        has_times(schedule_rule)
        and not (had_times and (row.is_in_pause or row.next_at is not None))
    ):
        # Without a tick no partition was handled meanwhile, and none that ended is due: there is no
        # catch-up.
        row.handled_until = row.began_at = now
    elif row.by_time:
        row.began_at = row.handled_until
    elif row.joins_times and schedule_rule is not None and is_time(schedule_rule["schedule"]):
        # One of several times may have ticked less often than the others.
        before = time_rule(schedule_rule).last_until(row.handled_until)
        row.handled_until = row.began_at if before is None else max(before, row.began_at)
    elif row.joins_times and not has_times(schedule_rule):
        row.handled_until = row.began_at


def _new_rows(producers: Sequence[Producer], now: datetime) -> dict[int, Schedule]:
    """Create a run group for each producer; return schedules in these groups, not stored yet."""
    groups = RunGroup.objects.bulk_create(
        RunGroup(kind=GroupKind.SCHEDULE, label=producer.name[:300], queue=Queue.SCHEDULED)
        for producer in producers
    )
    return {
        producer.pk: Schedule(producer=producer, group=group, handled_until=now, began_at=now)
        for producer, group in zip(producers, groups, strict=True)
    }


def _columns(row: Schedule) -> list[Any]:
    return [getattr(row, name) for name in _COLUMNS]


def pause_schedule(asset: Asset, *, paused: bool, now: datetime) -> None:
    """Stop the ticks of the asset's schedule, or resume ticks from now on: no catch-up."""
    row = Schedule.objects.select_for_update(no_key=True).filter(producer=asset.producer_id).first()
    if row is None:
        return
    # A paused asset that came to the function has begun the pause before.
    if paused and not row.is_in_pause:
        _begin_pause(row, now)
    elif not paused:
        _end_pause(row, now)
    row.next_at = _next_at(row, is_paused=paused)
    row.save(update_fields=["next_at", "handled_until", "began_at", *_PAUSE])


def _begin_pause(row: Schedule, now: datetime) -> None:
    row.paused_at, row.unpaused_at, row.handled_before_pause = now, None, row.handled_until
    row.missed_spans, row.misses_since = [], row.handled_until if has_times(row.rule) else None
    row.unevaluated_since = unevaluated_writes.oldest_unevaluated(row.pk)
    # After the writes: an evaluation that ends in between takes a write away, and leaves marks.
    row.partitions_to_examine = unevaluated_writes.marked_partitions(row.producer_id)


def _end_pause(row: Schedule, now: datetime) -> None:
    """Resume ticks from now on: there is no catch-up."""
    _end_span(row, now)
    row.partitions_to_examine = unevaluated_writes.without_marked(row.partitions_to_examine)
    row.handled_until = row.began_at = row.unpaused_at = now


def _end_span(row: Schedule, now: datetime) -> None:
    """End the span of missed windows, before the rule changes and at the end of the pause."""
    row.missed_spans = [[first.isoformat(), last.isoformat()] for first, last in spans_of(row, now)]
    row.misses_since = None


def stop_schedules(bundle: Bundle, *, now: datetime) -> None:
    """Stop the schedules of producers whose assets no file declares any more; call in a
    transaction.
    """
    declared = Asset.objects.filter(producer=OuterRef("producer"), active=True)
    rows = Schedule.objects.filter(~Exists(declared), producer__bundle=bundle).exclude(rule=None)
    missing = rows.filter(misses_since__isnull=False).order_by("pk")
    paused = list(missing.select_for_update(no_key=True))
    for row in paused:
        _end_span(row, now)
    Schedule.objects.bulk_update(paused, ["misses_since", "missed_spans"])
    rows.update(next_at=None, rule=None)


def _next_at(row: Schedule, *, is_paused: bool) -> datetime | None:
    if is_paused or row.rule is None:
        return None
    try:
        return next_tick(row.rule, row.handled_until)
    except DefinitionError:
        # An old rule, which this version or this host cannot read any more: a tick at once records
        # the error, and tries again after pauses.
        return row.handled_until


def _rule_of(producer: Producer) -> _Rule:
    if producer.current_version is None:
        return None, _Limits(0, None)
    spec = producer.current_version.spec
    limits = _Limits(spec.priority, spec.max_active_runs)
    if not spec.schedule:
        return None, limits
    schedule_rule = {
        "schedule": spec.schedule,
        "timezone": spec.timezone,
        "start": spec.start_date,
        "end": spec.end_date,
        **windows_of(spec),
    }
    return schedule_rule, limits


def _paused_producers(producers: Iterable[Producer]) -> set[int]:
    paused = _paused_assets().filter(producer__in=producers)
    return {pk for pk in paused.values_list("producer_id", flat=True) if pk is not None}


def _paused_assets() -> QuerySet[Asset]:
    """Select the paused assets that pause their functions: not assets that no file declares."""
    return Asset.objects.filter(active=True, paused=True)


def _update_groups(group_limits: Iterable[tuple[RunGroup, _Limits]]) -> None:
    changed = []
    for group, limits in group_limits:
        if (group.priority, group.max_active_runs) != limits:
            group.priority, group.max_active_runs = limits
            changed.append(group)
    RunGroup.objects.bulk_update(changed, ["priority", "max_active_runs"], batch_size=_BATCH_SIZE)

"""Why a partition is in its state, in words: for the pages of partitions, the API and commands."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from assets_app.models import (
    Asset,
    AssetPartition,
    PartitionState,
    Run,
    RunState,
    Schedule,
    SkipReason,
)
from assets_app.queries.discovering import discovers_when_scheduled
from assets_app.queries.missed_spans import spans_of
from assets_app.queries.reason_texts import Reason, error_line, moment_text, upstream_reason
from assets_app.queries.run_waits import AwaitedPartitionStatus, awaited_by_run
from assets_app.queries.staleness import newer_inputs
from assets_app.queries.untriggered import untriggered_reason
from assets_app.queries.upstream_needs import UpstreamNeed, upstream_needs
from assets_app.queries.write_reach import followed_names, names_text
from partitions_app.state_badges import waits_for_slot
from slicewise import Interval

_PAUSED = "The asset is paused: the schedule queues no run."


def reasons_of(asset: Asset, keys: Sequence[str], now: datetime) -> dict[str, Reason]:
    """Return the reasons of some partitions by key, with or without a row: eight statements at
    most, and one for each upstream asset of which all of time is needed. An asset without
    partitions takes one more, and two for each upstream asset of which any partition suffices. An
    asset with partitions at run time takes one more, and so does a function with several assets.

    ``asset`` has its producer and schedule. A key that the definition no longer has gets a reason
    only if the partition has a row.
    """
    rows = AssetPartition.objects.filter(asset=asset, identity=asset.identity, key__in=keys)
    rows = rows.select_related("held_by__asset__partition_definition", "last_run")
    rows_by_key = {row.key: row for row in rows}
    made_keys = [key for key, row in rows_by_key.items() if row.version]
    newer = newer_inputs(asset, made_keys) if made_keys else {}
    open_keys = [key for key in keys if _is_open(rows_by_key.get(key))]
    needs = upstream_needs(asset, open_keys, now) if open_keys else {}
    awaited = awaited_by_run([row.held_by for row in rows_by_key.values() if row.held_by])
    is_discovering = bool(open_keys) and discovers_when_scheduled(asset)
    reasons: dict[str, Reason] = {}
    for key in keys:
        row = rows_by_key.get(key)
        key_needs = tuple(needs.get(key, ()))
        if row is not None and not _is_open(row):
            stale_text = newer[key].text if key in newer else ""
            reasons[key] = _settled_reason(row, stale_text)
            continue
        if row is not None and row.held_by is not None:
            reasons[key] = _waiting_reason(row.held_by, awaited.get(row.held_by.pk), key_needs)
            continue
        try:
            window = _window(asset, key)
        except ValueError:
            continue
        subject = _Missing(asset, key, row, window, key_needs, is_discovering, now)
        reasons[key] = _missing_reason(subject)
    return reasons


def _is_open(row: AssetPartition | None) -> bool:
    """Return whether upstream partitions may tell why the partition is in its state."""
    if row is None:
        return True
    if row.held_by is not None:
        return row.held_by.state == RunState.WAITING
    return row.state == PartitionState.MISSING


def _window(asset: Asset, key: str) -> Interval | None:
    """Return the window of a key; None without time. Raises ValueError for an unknown key."""
    if asset.definition is None:
        return None
    window: Interval | None = asset.definition.parse(key).time
    return window


def _settled_reason(row: AssetPartition, stale_text: str) -> Reason:
    run = row.held_by or row.last_run
    number = run.pk if run else None
    name = f"Run {number}" if number else "A run"
    if row.held_by is not None:
        words = "is queued" if waits_for_slot(row.held_by.state) else "is running"
        return Reason(row.held_by.state, f"{name} {words}.", number)
    match row.state:
        case PartitionState.MATERIALIZED if stale_text:
            return Reason("stale", f"Upstream data has changed since: {stale_text}.", None)
        case PartitionState.MATERIALIZED:
            return Reason("materialized", f"Version {row.version} is up to date.", number)
        case PartitionState.FAILED:
            return Reason("failed", f"{name} failed{_error_text(run)}", number)
        case PartitionState.CANCELED:
            return Reason("canceled", f"{name} was canceled.", number)
    # A tick marks a missing partition; a run that has materialized the partition before its data
    # was forgotten is the last run still.
    if run is None or run.state != RunState.SKIPPED:
        return Reason("skipped", "A tick left the partition out: it queued the latest only.", None)
    label = dict(SkipReason.choices).get(run.skip_reason, "")
    return Reason(
        "skipped",
        f"{name} skipped the partition" + (f": {label.lower()}." if label else "."),
        number,
    )


def _error_text(run: Run | None) -> str:
    line = error_line(run.error) if run else ""
    return f": {line}" if line else "."


def _waiting_reason(
    run: Run, awaited: AwaitedPartitionStatus | None, needs: tuple[UpstreamNeed, ...]
) -> Reason:
    """Return why a run waits: for an earlier partition of the asset, and for no upstream data."""
    if awaited is None:
        return Reason("waiting", f"Run {run.pk} is about to be queued.", run.pk, needs=needs)
    further = f" and {awaited.further_count:,} more" if awaited.further_count else ""
    state = f"run {awaited.run_id}, {awaited.state}" if awaited.run_id else awaited.state
    text = f"Run {run.pk} waits for the previous partition {awaited.label} ({state}){further}."
    return Reason("waiting", text, run.pk, needs=needs)


class _Missing(NamedTuple):
    """A partition that nothing has materialized; ``is_discovering`` says that the schedule queues
    runs that discover partitions.
    """

    asset: Asset
    key: str
    row: AssetPartition | None
    window: Interval | None
    needs: tuple[UpstreamNeed, ...]
    is_discovering: bool
    now: datetime


def _missing_reason(subject: _Missing) -> Reason:
    """Return why nothing has materialized the partition: the first of the causes that holds."""
    asset, key, row, window, needs, is_discovering, now = subject
    producer = asset.producer
    ended_at = window.end if window else None
    if not asset.active:
        return Reason("removed", "No definition file declares the asset any more.", needs=needs)
    if producer is None:
        text = "Another program writes the asset, and has reported no write."
        return Reason("external", text, needs=needs)
    if ended_at is not None and ended_at > now:
        text = f"The time window ends at {moment_text(ended_at)}."
        return Reason("not_yet_due", text, needs=needs)
    schedule = Schedule.of(asset)
    if schedule is None or schedule.rule is None:
        text = "The asset has no schedule: only requests and backfills run it."
        blocked = upstream_reason(needs, all_needs=needs)
        return blocked or Reason("no_schedule", text, needs=needs)
    if schedule.by_time:
        return _time_reason(asset, schedule, ended_at, needs)
    if is_discovering:
        reason = _discovery_reason(schedule, needs)
    else:
        reason = untriggered_reason(asset, schedule, key, row, ended_at, needs, now)
    return _paused_reason(reason) if asset.paused else reason


def _discovery_reason(schedule: Schedule, needs: tuple[UpstreamNeed, ...]) -> Reason:
    names = names_text(followed_names(schedule), "or")
    text = (
        f"A write of {names} queues a run that discovers partitions: the run materializes the"
        " partition if the run finds the key. Materialize the partition now, or start a backfill."
    )
    return Reason("not_triggered", text, needs=needs)


def _paused_reason(reason: Reason) -> Reason:
    """Return the pause as the reason, and the cause that stays after the pause, if any."""
    match reason.code:
        case "waiting_for_tick":
            text = f"{_PAUSED} If the asset is unpaused in time: {_uncapitalized(reason.text)}"
        case "not_triggered":
            text = (
                f"{_PAUSED} Unpausing does not make the partition due: materialize the partition,"
                " or start a backfill."
            )
        case _:
            text = f"{_PAUSED} {reason.text}"
    return reason.with_text(text, "paused")


def _uncapitalized(text: str) -> str:
    return text[:1].lower() + text[1:]


def _time_reason(
    asset: Asset, schedule: Schedule, ended_at: datetime | None, needs: tuple[UpstreamNeed, ...]
) -> Reason:
    """Return why a schedule by time has not queued a partition that has ended."""
    # A tick before the pause has handled the windows that ended before.
    in_pause, handled_until = schedule.is_in_pause, schedule.handled_until
    since = (in_pause and schedule.handled_before_pause) or handled_until
    is_handled = ended_at is not None and ended_at <= since
    if asset.paused and not is_handled:
        return Reason("paused", _PAUSED, needs=needs)
    if ended_at is not None and ended_at <= asset.activated_at:
        return Reason(
            "before_activation",
            "The time window ended before the asset was activated at"
            f" {moment_text(asset.activated_at)}: a schedule never fills the past.",
            needs=needs,
        )
    blocked = upstream_reason(needs, all_needs=needs)
    return (
        blocked
        or _missed_reason(schedule, ended_at, needs)
        or _tick_reason(schedule.next_at, schedule.handled_until, ended_at, needs)
    )


def _missed_reason(
    schedule: Schedule, ended_at: datetime | None, needs: tuple[UpstreamNeed, ...]
) -> Reason | None:
    """Return the last pause as the reason, if the window ended during the pause."""
    paused_at, unpaused_at = schedule.paused_at, schedule.unpaused_at
    if ended_at is None or paused_at is None or unpaused_at is None:
        return None
    if not any(since < ended_at <= until for since, until in spans_of(schedule, unpaused_at)):
        return None
    text = (
        f"The partition came due while the asset was paused, from {moment_text(paused_at)} to"
        f" {moment_text(unpaused_at)}: the schedule does not queue the partition any more."
    )
    return Reason("missed_while_paused", text, needs=needs)


def _tick_reason(
    next_at: datetime | None,
    handled_until: datetime,
    ended_at: datetime | None,
    needs: tuple[UpstreamNeed, ...],
) -> Reason:
    if ended_at is not None and ended_at <= handled_until:
        text = (
            "An earlier tick of the schedule did not queue the partition, and later ticks do not."
        )
        return Reason("not_queued", text, needs=needs)
    if next_at is None:
        return Reason("schedule_ended", "The schedule has no further ticks.", needs=needs)
    return Reason(
        "waiting_for_tick", f"Due at the next tick at {moment_text(next_at)}.", needs=needs
    )


def reason_of(asset: Asset, key: str, now: datetime) -> Reason | None:
    """Return the reason of one partition; None for a key that names no partition."""
    reasons: Mapping[str, Reason] = reasons_of(asset, [key], now)
    return reasons.get(key)

"""Why a schedule by assets has not queued a partition, in words."""

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

from assets_app.models import Asset, AssetPartition, Schedule
from assets_app.queries.reason_texts import (
    Reason,
    error_line,
    moment_text,
    not_counted_text,
    upstream_reason,
)
from assets_app.queries.schedule_ticks import is_tick
from assets_app.queries.schedule_ways import Way, ways_of
from assets_app.queries.trigger_causes import cause_of, next_write_texts
from assets_app.queries.upstream_needs import UpstreamNeed, needs_of_any
from assets_app.queries.write_reach import WriteReach, followed_needs, names_text, write_reach
from slicewise import DefinitionError
from slicewise.declaring import fresh_names, schedule_names

_MOST_OTHER_WAYS = 2


class _Subject(NamedTuple):
    """A partition with its schedule and needs, and the writes that concern the partition."""

    asset: Asset
    schedule: Schedule
    ended_at: datetime | None
    needs: tuple[UpstreamNeed, ...]
    reach: WriteReach
    now: datetime


def untriggered_reason(
    asset: Asset,
    schedule: Schedule,
    key: str,
    row: AssetPartition | None,
    ended_at: datetime | None,
    needs: tuple[UpstreamNeed, ...],
    now: datetime,
) -> Reason:
    """Return why a schedule by assets has not queued a partition whose window has ended, if the
    partition has one: the assets or the time that the schedule waits for, or the cause why data
    that is there has made nothing due. Of a paused asset, the tick is the one that makes the
    partition due if the asset is unpaused before.
    """
    schedule_needs = _schedule_needs(asset, schedule, needs)
    put_off_until = _put_off_until(row)
    try:
        is_at_tick = put_off_until is not None and is_tick(schedule.rule or {}, put_off_until)
        # A tick that has passed is not handled yet; no tick of a paused asset is handled.
        if put_off_until is not None and put_off_until <= now and (asset.paused or not is_at_tick):
            put_off_until, is_at_tick = None, False
        ways = ways_of(
            schedule,
            schedule_needs,
            ended_at,
            now,
            put_off_until=put_off_until if is_at_tick else None,
            is_paused=asset.paused,
        )
    except DefinitionError as error:
        # An old rule, which this version or this host cannot read any more.
        text = f"The schedule cannot be evaluated: {error_line(str(error))}."
        return Reason("schedule_unreadable", text, needs=needs)
    reach = write_reach(asset, schedule, schedule_needs, key, ended_at, now)
    subject = _Subject(asset, schedule, ended_at, needs, reach, now)
    are_ticks_over = bool(ways) and all(way.has_no_tick for way in ways)
    # Nothing but a write examines the partition by a way that holds now and has no tick to come.
    written_ways = [
        way for way in _possible_ways(ways, needs) if way.holds_now or not way.is_impossible
    ]
    ways = [way for way in written_ways if not way.is_impossible]
    if ways and not any(way.is_ready for way in ways):
        is_put_off = row is not None and row.due_again
        blocked_ways = [way for way in ways if is_put_off or _is_examined(way, needs, reach)]
        if blocked_ways:
            return _blocked_reason(blocked_ways, needs)
    ticking_ways = sorted(
        (way for way in ways if way.is_ready and way.until is not None), key=attrgetter("until")
    )
    # A tick at which an asset is too old makes nothing due.
    soonest = next((way.until for way in ticking_ways if not way.expiring), None)
    retry_at = None if is_at_tick else put_off_until
    if not asset.paused and (schedule.failing_since is not None or retry_at is not None):
        return _failed_reason(subject, written_ways, retry_at, soonest)
    if soonest is not None:
        other_ways_text = _other_ways([way for way in ways if not way.is_ready])
        text = f"{_tick_text(soonest)}{other_ways_text}"
        return Reason("waiting_for_tick", text, needs=needs)
    if ticking_ways:
        return Reason("waiting_for_fresh", _expiring_text(ticking_ways[0]), needs=needs)
    text = _not_triggered_text(subject, written_ways)
    if are_ticks_over:
        text = f"The schedule has no tick to come. {text}"
    return Reason("not_triggered", text, needs=needs)


def _schedule_needs(
    asset: Asset, schedule: Schedule, needs: Sequence[UpstreamNeed]
) -> list[UpstreamNeed]:
    """Return the needs of a partition, also for the assets of the schedule of which one partition
    suffices.
    """
    names = {*schedule_names(schedule.expression), *fresh_names(schedule.expression)}
    names -= {need.asset.name for need in needs}
    return [*needs, *(needs_of_any(asset, names) if names else ())]


def _possible_ways(ways: list[Way], needs: Sequence[UpstreamNeed]) -> list[Way]:
    """Return the ways without partitions that do not exist; all ways if each way needs some."""
    never = {need.asset.name for need in needs if need.upstream_gap is not None}
    return [way for way in ways if not way.missing & never] or ways


def _is_examined(way: Way, needs: Sequence[UpstreamNeed], reach: WriteReach) -> bool:
    """Return whether a tick or what a way lacks examines the partition, which no examination has
    put off: fresh data does not, nor do writes that do not concern the partition. Partitions that
    do not exist are told anyway.
    """
    awaited = way.triggers | way.missing | way.uncounted
    if way.until is not None or not awaited:
        return True
    if awaited == way.triggers:
        return False
    never = {need.asset.name for need in needs if need.upstream_gap is not None}
    return bool(way.missing & never) or not awaited <= reach.unconcerning


def _put_off_until(row: AssetPartition | None) -> datetime | None:
    """Return until when the schedule has put a partition off: until a tick, the end of the window,
    or until the schedule is tried again after a failure; None for any other partition.
    """
    if row is None or not row.due_again or row.due_at is None:
        return None
    # A partition that waits for a fresh asset is put off until then, for ages.
    return row.due_at if row.due_at.year < datetime.max.year else None


def _tick_text(tick: datetime) -> str:
    return f"Due at the tick of the schedule at {moment_text(tick)}."


def _expiring_text(way: Way) -> str:
    names = names_text(sorted(way.expiring))
    verb = "is" if len(way.expiring) == 1 else "are"
    moment = moment_text(way.until) if way.until else ""
    return (
        f"Waiting for fresh data of {names}: at the next tick for the partition, at {moment}, the"
        f" data of {names} {verb} too old."
    )


def _failed_reason(
    subject: _Subject, ways: Sequence[Way], retry_at: datetime | None, tick: datetime | None
) -> Reason:
    """Return the failure of the schedule, if the schedule fails, when the partition is evaluated
    again, and the next tick that makes the partition due. ``retry_at`` is until when the failure
    has put the partition off.

    A retry of the schedule examines what has been written since the schedule fails, and the ticks
    that are not handled: no other partition whose data triggers nothing.
    """
    schedule, needs, now = subject.schedule, subject.needs, subject.now
    sentences: list[str] = []
    if schedule.failing_since is not None:
        error = error_line(schedule.error).rstrip(".")
        sentences.append(f"The evaluation of the schedule failed: {error}.")
    is_examined = (
        retry_at is not None
        or (tick is not None and tick <= now)
        or not cause_of(schedule, needs, subject.ended_at).is_whole
    )
    retry_at = retry_at or schedule.retry_at
    if is_examined and retry_at is not None and retry_at > now:
        sentences.append(f"The schedule is evaluated again at {moment_text(retry_at)}.")
    if tick is not None and tick > now:
        sentences.append(_tick_text(tick))
    elif not is_examined:
        sentences.append(_not_triggered_text(subject, ways))
        return Reason("not_triggered", " ".join(sentences), needs=needs)
    return Reason("evaluated_again", " ".join(sentences), needs=needs)


def _blocked_reason(ways: Sequence[Way], needs: tuple[UpstreamNeed, ...]) -> Reason:
    """Return the reason of a partition none of whose ways has all assets: the first way's assets,
    and the assets of the other ways.
    """
    first = ways[0]
    other_ways_text = _other_ways([way for way in ways[1:] if not first.lacked <= way.lacked])
    gaps = [need for need in needs if need.asset.name in first.missing and need.upstream_gap]
    lacking = [need for need in needs if need.asset.name in first.missing]
    blocked = _gap_reason(gaps, needs) if gaps else upstream_reason(lacking, all_needs=needs)
    if blocked is not None:
        return blocked.with_text(blocked.text + other_ways_text)
    if first.missing:
        text = f"No partition of {names_text(sorted(first.missing), 'or')} is materialized yet."
        return Reason("waiting_for_upstream", text + other_ways_text, needs=needs)
    if first.old:
        text = f"Waiting for fresh data of {names_text(sorted(first.old))}.{other_ways_text}"
        return Reason("waiting_for_fresh", text, needs=needs)
    return Reason("not_counted", not_counted_text(needs) + other_ways_text, needs=needs)


def _gap_reason(gaps: Sequence[UpstreamNeed], needs: tuple[UpstreamNeed, ...]) -> Reason:
    gap_texts = [need.upstream_gap.reason for need in gaps if need.upstream_gap]
    text = (
        f"Needed upstream partitions do not exist: {'; '.join(gap_texts)}."
        " The schedule never makes the partition due."
    )
    return Reason("upstream_does_not_exist", text, needs=needs)


def _other_ways(ways: Sequence[Way]) -> str:
    """Return a sentence on the assets that the other ways of the schedule lack, if any: each set of
    assets once, and no set that holds another one.
    """
    name_sets: list[frozenset[str]] = []
    for way in ways:
        names = way.missing | way.old
        if names and not any(lesser <= names for lesser in name_sets):
            name_sets.append(names)
    texts = [names_text(sorted(names)) for names in name_sets[:_MOST_OTHER_WAYS]]
    if not texts:
        return ""
    verb = "Another way" if len(texts) == 1 else "Other ways"
    waits = "waits" if len(texts) == 1 else "wait"
    return f" {verb} of the schedule {waits} for {', or for '.join(texts)}."


def _not_triggered_text(subject: _Subject, ways: Sequence[Way]) -> str:
    """Return why present data has made nothing due, and the steps that make the partition.

    ``ways`` are the ways that are possible; without one, nothing but a person makes the partition.
    """
    asset, schedule, ended_at, needs, reach, _now = subject
    cause = cause_of(schedule, needs, ended_at).text
    if not cause and followed_needs(schedule, needs):
        cause = "No write of an upstream partition has made the partition due."
    sentences = [cause] if cause else []
    if schedule.joins_times and ended_at is not None and ended_at <= schedule.began_at:
        sentences.append(
            "The time window ended before the schedule began at"
            f" {moment_text(schedule.began_at)}: a time alone does not make the partition due."
        )
    sentences += reach.texts
    if all(need.is_counted for need in needs):
        sentences += next_write_texts(asset, schedule, ways, reach)
    return " ".join([*sentences, "Materialize the partition now, or start a backfill."])

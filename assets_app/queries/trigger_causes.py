"""Why present data has made nothing due, and the writes that make a partition due, in words."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings

from assets_app.models import Asset, Schedule
from assets_app.queries.reason_texts import moment_text
from assets_app.queries.schedule_ways import Way
from assets_app.queries.upstream_needs import UpstreamNeed
from partitions_app.rules import has_time
from slicewise.declaring import schedule_names
from slicewise.partitions import ended_between

_MOST_WRITES = 3
_MOMENT = timedelta(microseconds=1)


class Cause(NamedTuple):
    """Why the upstream partitions that are materialized have made nothing due: an empty text
    without a known cause. ``is_whole`` says that no write of these partitions triggers something;
    a cause in part leaves other partitions, whose writes may.
    """

    text: str = ""
    is_whole: bool = False


def cause_of(schedule: Schedule, needs: Sequence[UpstreamNeed], ended_at: datetime | None) -> Cause:
    """Return why what is materialized of a partition's needs has made nothing due."""
    needs = followed_needs(schedule, needs)
    # Needs without a number, and assets of which any partition suffices, may have had writes.
    counted_names = {need.asset.name for need in needs if need.is_counted}
    is_whole = counted_names.issuperset(followed_names(schedule))
    if needs and is_whole and all(need.needs_none for need in needs):
        text = (
            "The partition needs no upstream partition, so that no write makes the partition due."
        )
        return Cause(text, is_whole=True)
    present = [need for need in needs if need.materialized]
    from_backfill = [need for need in present if need.backfilled]
    if from_backfill and is_whole and all(n.backfilled == n.materialized for n in present):
        text = "The upstream partitions came from a backfill, which triggers nothing."
        return Cause(text, is_whole=True)
    if from_backfill:
        names = names_text([need.asset.name for need in from_backfill])
        return Cause(
            f"Upstream partitions of {names} came from a backfill, which triggers nothing."
        )
    times = [need.recorded_at for need in present if need.recorded_at is not None]
    text = _time_of_writes(schedule, max(times)) if times else ""
    if not text and ended_at is not None and present:
        last_ticks = [_last_tick(need) for need in present]
        if all(tick is not None and tick < ended_at for tick in last_ticks):
            text = "The last write came before the time window ended."
    return Cause(text, is_whole=is_whole and (bool(text) or not present))


def _last_tick(need: UpstreamNeed) -> datetime | None:
    """Return when the last write was recorded, if the next write concerns later windows alone."""
    is_timeless = need.is_tick and not has_time(need.asset.definition)
    return need.recorded_at if is_timeless else None


def _time_of_writes(schedule: Schedule, newest_at: datetime) -> str:
    """Return that writes, the newest at that time, came when the schedule followed none; an empty
    text for other times.
    """
    paused_at, unpaused_at = schedule.paused_at, schedule.unpaused_at
    if paused_at and unpaused_at and paused_at <= newest_at <= unpaused_at:
        return (
            "The upstream partitions were materialized while the asset was paused, from"
            f" {moment_text(paused_at)} to {moment_text(unpaused_at)}."
        )
    if newest_at <= schedule.began_at:
        return (
            "The upstream partitions were materialized before the schedule began at"
            f" {moment_text(schedule.began_at)}."
        )
    return ""


class _WriteDemand(NamedTuple):
    """What a write must meet to make a partition due: a tick after the write, and fresh assets."""

    needs_tick: bool
    fresh: frozenset[str]


def next_write_texts(
    schedule: Schedule, ways: Sequence[Way], passed_by: Collection[str]
) -> list[str]:
    """Return sentences on the assets whose next write makes the partition due: those of ways that
    need neither a tick nor fresh data come first, and each asset is named once. ``passed_by`` is
    the result of ``passing_names``.
    """
    names_by_demand: dict[_WriteDemand, set[str]] = {}
    for way in ways:
        if not way.missing | way.uncounted:
            names = names_by_demand.setdefault(
                _WriteDemand(way.needs_tick, way.fresh | way.old), set()
            )
            names |= way.triggers
    # Any write examines the partition, and finds a way true that holds now.
    if holding_demands := [_WriteDemand(False, way.fresh) for way in ways if way.holds_now]:
        least_demand = min(holding_demands, key=_turn)
        names_by_demand = {least_demand: set().union(*names_by_demand.values())}
    texts: list[str] = []
    named_assets = set(passed_by)
    for demand in sorted(names_by_demand, key=_turn):
        unnamed_assets = names_by_demand[demand] - named_assets
        named_assets |= unnamed_assets
        asset_names = [name for name in followed_names(schedule) if name in unnamed_assets]
        if asset_names:
            texts.append(_next_write_text(asset_names, demand))
    return texts[:_MOST_WRITES]


def passing_names(
    asset: Asset,
    schedule: Schedule,
    needs: Sequence[UpstreamNeed],
    ended_at: datetime | None,
    now: datetime,
) -> frozenset[str]:
    """Return the names of the assets whose next write concerns later windows alone, or perhaps
    does: a backfill hides when the write before was recorded.
    """
    tick_needs = [need for need in needs if need.is_tick]
    definition = asset.definition
    if ended_at is None or definition is None or not tick_needs:
        return frozenset()
    # The schedule begins anew when the asset is unpaused. A write queues the newest windows.
    is_out_of_reach = (
        asset.paused
        or ended_at <= schedule.followed_since
        or len(ended_between(definition, ended_at - _MOMENT, now))
        > settings.MAX_PARTITIONS_PER_TICK
    )
    return frozenset(
        need.asset.name
        for need in tick_needs
        if is_out_of_reach or ((tick := _last_tick(need)) is not None and ended_at <= tick)
    )


def passing_text(names: Collection[str]) -> str:
    """Return which windows a write of these assets concerns."""
    return (
        f"A write of {names_text(sorted(names), 'or')} makes due only time windows that ended since"
        " the schedule began and since the write before, the newest"
        f" {settings.MAX_PARTITIONS_PER_TICK:,} at most."
    )


def _turn(demand: _WriteDemand) -> tuple[bool, int]:
    return demand.needs_tick, len(demand.fresh)


def _next_write_text(names: Sequence[str], demand: _WriteDemand) -> str:
    tick_text = " at a tick after the write" if demand.needs_tick else ""
    verb = "is" if len(demand.fresh) == 1 else "are"
    fresh_text = f" when {names_text(sorted(demand.fresh))} {verb} fresh" if demand.fresh else ""
    return (
        f"The next write of a needed partition of {names_text(names, 'or')} by a schedule, a"
        f" person or a report makes the partition due{tick_text}{fresh_text}."
    )


def followed_names(schedule: Schedule) -> Sequence[str]:
    """Return the names of the assets whose writes a schedule follows."""
    names: Sequence[str] = schedule_names(schedule.expression)
    return names


def followed_needs(schedule: Schedule, needs: Sequence[UpstreamNeed]) -> list[UpstreamNeed]:
    """Return the needs of the assets whose writes a schedule follows."""
    names = followed_names(schedule)
    return [need for need in needs if need.asset.name in names]


def names_text(names: Sequence[str], word: str = "and") -> str:
    """Return ``a``, ``a and b``, or ``a, b and c``."""
    return f" {word} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)

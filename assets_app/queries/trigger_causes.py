"""Why present data has made nothing due, and the writes that make a partition due, in words."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from assets_app.models import Asset, Schedule
from assets_app.queries.reason_texts import moment_text
from assets_app.queries.schedule_ways import Way
from assets_app.queries.upstream_needs import UpstreamNeed
from assets_app.queries.write_reach import (
    WriteReach,
    followed_names,
    followed_needs,
    names_text,
)
from partitions_app.rules import has_time

_MOST_WRITES = 3


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
    if not text and present and all(_came_before(need, ended_at) for need in present):
        text = "The last write came before the time window ended."
    return Cause(text, is_whole=is_whole and (bool(text) or not present))


def _came_before(need: UpstreamNeed, ended_at: datetime | None) -> bool:
    """Return whether the last write of an asset whose writes concern windows that have ended was
    recorded before the window ended.
    """
    if ended_at is None or need.edge is None or need.recorded_at is None:
        return False
    is_timeless = need.edge.has_common_needs and not has_time(need.edge.upstream)
    return is_timeless and need.recorded_at < ended_at


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
    asset: Asset, schedule: Schedule, ways: Sequence[Way], reach: WriteReach
) -> list[str]:
    """Return sentences on the assets whose next write makes the partition due: those of ways that
    need neither a tick nor fresh data come first, and each asset is named once. Nothing is promised
    of assets whose writes may not concern the partition.
    """
    names_by_demand: dict[_WriteDemand, set[str]] = {}
    for way in ways:
        if not way.missing | way.uncounted:
            names = names_by_demand.setdefault(
                _WriteDemand(way.needs_tick, way.fresh | way.old), set()
            )
            names |= way.triggers & reach.concerning
    # Any write examines the partition, and finds a way true that holds now. Of assets that one
    # function makes, the first is examined, which may be made from the present data.
    if holding_demands := [_WriteDemand(False, way.fresh) for way in ways if way.holds_now]:
        least_demand = min(holding_demands, key=_turn)
        names = set().union(*names_by_demand.values())
        names_by_demand = {least_demand: names if asset.materialized_with else {*reach.concerning}}
    texts: list[str] = []
    named_assets: set[str] = set()
    for demand in sorted(names_by_demand, key=_turn):
        unnamed_assets = names_by_demand[demand] - named_assets
        named_assets |= unnamed_assets
        asset_names = [name for name in followed_names(schedule) if name in unnamed_assets]
        if asset_names:
            texts.append(_next_write_text(asset_names, demand))
    return texts[:_MOST_WRITES]


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

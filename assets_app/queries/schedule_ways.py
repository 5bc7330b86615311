"""The ways in which a schedule by assets becomes true for a partition, and what each way lacks.

A schedule with `|` has several ways: `(a & b) | (a & After(...))` has one with b, and one with a
time.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, NamedTuple

from assets_app.models import Schedule
from assets_app.queries.coming_ticks import ComingTicks
from assets_app.queries.schedule_ticks import term_text
from assets_app.queries.upstream_needs import UpstreamNeed
from slicewise.declaring import evaluate_schedule, is_after

# An expression of a hundred terms may have a million ways; reasons name three.
_MOST_WAYS = 64
_NEVER = datetime.max.replace(tzinfo=UTC)


class Way(NamedTuple):
    """One way in which a schedule becomes true.

    ``missing`` are the names of the assets whose needed partitions are not all materialized,
    ``old`` the names of the assets that are not fresh, and ``uncounted`` the names of the assets of
    which too many partitions are needed to tell. ``triggers`` are the names of the assets that are
    ready, and whose next write makes the partition due if the way lacks nothing. ``until`` is the
    tick that meets the times of the way; None without times, and where no tick to come examines the
    partition. ``fresh`` are the names of the assets that are fresh now, and ``expiring`` those that
    are too old at that tick.
    """

    missing: frozenset[str]
    old: frozenset[str]
    uncounted: frozenset[str]
    triggers: frozenset[str]
    until: datetime | None
    fresh: frozenset[str]
    expiring: frozenset[str]
    # Whether the way is true without a tick, so that each examination finds the way true.
    holds_now: bool
    # Whether the times are met by a tick to come alone.
    needs_tick: bool
    # Times and fresh assets make nothing due without data of another asset: beside an asset of
    # which no partition is needed, which is ready and brings no data, and where the window ended
    # before the schedule began.
    needs_trigger: bool
    # The way has ticks, and these can no longer meet the times.
    has_no_tick: bool

    @property
    def is_ready(self) -> bool:
        """Whether the way needs nothing but a time."""
        return not self.lacked

    @property
    def lacked(self) -> frozenset[str]:
        """The names of the assets that are not known to be ready."""
        return self.missing | self.old | self.uncounted

    @property
    def is_impossible(self) -> bool:
        """Whether nothing to come makes the partition due by this way: no tick meets the times, or
        no asset is beside the times whose write would make the partition due.
        """
        if self.has_no_tick and self.until is None:
            return True
        if self.triggers or self.missing or self.uncounted:
            return False
        return self.needs_trigger or (self.is_ready and self.until is None)


class _Draft(NamedTuple):
    missing: frozenset[str] = frozenset()
    old: frozenset[str] = frozenset()
    uncounted: frozenset[str] = frozenset()
    triggers: frozenset[str] = frozenset()
    # Until when each asset that is to be fresh is fresh, by name.
    fresh_until: frozenset[tuple[str, datetime]] = frozenset()
    ticks: frozenset[str] = frozenset()
    # The longest span of the terms `After`.
    seconds: int = -1
    # As in `Way`.
    needs_trigger: bool = False

    def __or__(self, right: Any) -> "_Draft":
        return _Draft(
            self.missing | right.missing,
            self.old | right.old,
            self.uncounted | right.uncounted,
            self.triggers | right.triggers,
            self.fresh_until | right.fresh_until,
            self.ticks | right.ticks,
            max(self.seconds, right.seconds),
            self.needs_trigger or right.needs_trigger,
        )

    @property
    def asset_counts(self) -> tuple[int, int]:
        """The number of assets that the draft lacks, and of assets that are not counted."""
        return len(self.missing) + len(self.old), len(self.uncounted)

    @property
    def kind(self) -> tuple[Any, ...]:
        """The parts of the draft by which a tick or an examination tells drafts apart: either of
        two ways with different times may be met by a tick of its own, and times alone never make
        some partitions due that the same times make due beside an asset.
        """
        is_barred = self.needs_trigger and not self.triggers
        return self.ticks, self.seconds, bool(self.triggers), bool(self.fresh_until), is_barred

    @property
    def first_expiry(self) -> datetime:
        """When the first of the fresh assets is too old; a time far away without one."""
        return min((moment for _name, moment in self.fresh_until), default=_NEVER)

    def is_within(self, draft: "_Draft") -> bool:
        """Return whether the given draft lacks all assets that this draft lacks, is of the same
        kind, and stays fresh no longer.
        """
        return (
            self.missing <= draft.missing
            and self.old <= draft.old
            and self.uncounted <= draft.uncounted
            and self.kind == draft.kind
            and self.first_expiry >= draft.first_expiry
        )


def ways_of(
    schedule: Schedule,
    needs: Sequence[UpstreamNeed],
    ended_at: datetime | None,
    now: datetime,
    *,
    put_off_until: datetime | None = None,
    is_paused: bool = False,
) -> list[Way]:
    """Return the ways of a schedule by assets for a partition; the way that lacks the fewest
    assets comes first. ``ended_at`` is the end of the partition's window, if any, and
    ``put_off_until`` the tick until which the schedule has put the partition off; of a paused
    asset, the ticks are the ones that count if the asset is unpaused now.

    Raises DefinitionError for a time that this version or this host cannot read.
    """
    ticks = ComingTicks(schedule, ended_at, now, put_off_until=put_off_until, is_paused=is_paused)
    needs_by_name = {need.asset.name: need for need in needs}

    def of_leaf(leaf: Mapping[str, Any]) -> list[_Draft]:
        return [_draft_of(leaf, needs_by_name, now)]

    drafts = evaluate_schedule(
        schedule.expression,
        of_leaf,
        of_any=lambda operands: _least(draft for drafts in operands for draft in drafts),
        of_all=_together,
    )
    least = sorted(_least(drafts), key=lambda draft: draft.asset_counts)
    return _examined_together({draft: _way_of(draft, ticks) for draft in least}, ticks)


def _way_of(draft: _Draft, ticks: ComingTicks) -> Way:
    has_assets, has_fresh = bool(draft.triggers), bool(draft.fresh_until)
    is_barred = draft.needs_trigger and not has_assets
    needs_tick = not ticks.needs_none(draft.ticks, draft.seconds)
    until = ticks.until(draft.ticks, draft.seconds, has_assets=has_assets, has_fresh=has_fresh)
    until = None if is_barred else until
    return Way(
        missing=draft.missing,
        old=draft.old,
        uncounted=draft.uncounted,
        triggers=draft.triggers,
        until=until,
        fresh=frozenset(name for name, moment in draft.fresh_until if moment != _NEVER),
        expiring=frozenset(
            name for name, fresh_until in draft.fresh_until if until and fresh_until < until
        ),
        holds_now=draft.asset_counts == (0, 0)
        and not is_barred
        and not needs_tick
        and ticks.makes_due_without_first_tick(has_assets=has_assets, has_fresh=has_fresh),
        needs_tick=needs_tick,
        needs_trigger=draft.needs_trigger
        or not ticks.makes_due_without_first_tick(has_assets=False, has_fresh=True),
        has_no_tick=ticks.are_over(draft.ticks, draft.seconds),
    )


def _examined_together(ways: Mapping[_Draft, Way], ticks: ComingTicks) -> list[Way]:
    """Return the ways without the ticks that never examine the partition, where a way is true
    without a tick.

    A tick that examines a window and finds such a way true does not put the window off until the
    tick of another way. A later examination does, once the fresh assets of the way are too old.
    """
    holding_drafts = [draft for draft, way in ways.items() if way.holds_now]
    if not ticks.examinations or not holding_drafts:
        return list(ways.values())
    later_ticks = ticks.examined_after(max(draft.first_expiry for draft in holding_drafts))
    examined_ways = []
    for draft, way in ways.items():
        if way.until in ticks.examinations:
            examined_ways.append(way)
        elif later_ticks.examinations:
            examined_ways.append(_way_of(draft, later_ticks))
        else:
            examined_ways.append(way._replace(until=None))
    return examined_ways


def _draft_of(
    leaf: Mapping[str, Any], needs_by_name: Mapping[str, UpstreamNeed], now: datetime
) -> _Draft:
    if is_after(leaf):
        return _Draft(seconds=leaf["seconds"])
    if "name" not in leaf:
        return _Draft(ticks=frozenset({term_text(leaf)}))
    need, name = needs_by_name.get(leaf["name"]), frozenset({leaf["name"]})
    if need is not None and not need.is_counted and need.upstream_gap is None:
        return _Draft(uncounted=name)
    if leaf["kind"] == "fresh":
        if need is None or need.newest_at is None:
            never_old = _Draft(fresh_until=frozenset({(leaf["name"], _NEVER)}))
            return never_old if need is not None and need.needs_none else _Draft(old=name)
        fresh_until = need.newest_at + timedelta(seconds=leaf["seconds"])
        if fresh_until < now:
            return _Draft(old=name)
        return _Draft(fresh_until=frozenset({(leaf["name"], fresh_until)}))
    if need is not None and need.needs_none:
        return _Draft(needs_trigger=True)
    is_ready = need is not None and need.is_ready
    return _Draft(triggers=name) if is_ready else _Draft(missing=name)


def _together(operands: Sequence[list[_Draft]]) -> list[_Draft]:
    """Return the drafts of all operands together."""
    drafts = [_Draft()]
    for operand in operands:
        drafts = _least(draft | added for draft in drafts for added in operand)
    return drafts


def _least(drafts: Iterable[_Draft]) -> list[_Draft]:
    """Return the drafts that lack no more than any other draft of the same kind, those with the
    fewest assets first.
    """
    least: list[_Draft] = []
    for draft in sorted(_united(drafts), key=_turn):
        if not any(lesser.is_within(draft) for lesser in least):
            least.append(draft)
        if len(least) >= _MOST_WAYS:
            break
    return least


def _turn(draft: _Draft) -> tuple[tuple[int, int], int]:
    return draft.asset_counts, len(draft.ticks)


def _united(drafts: Iterable[_Draft]) -> Iterable[_Draft]:
    """Return one draft of all that lack the same assets and are of the same kind: a write of any of
    their triggers suffices, and the assets that are fresh for longest.

    A hundred assets that are ready would otherwise be a million ways, and hide those with a tick.
    """
    united: dict[tuple[Any, ...], _Draft] = {}
    for draft in drafts:
        key = (draft.missing, draft.old, draft.uncounted, draft.kind)
        if (other := united.get(key)) is not None:
            longest = max(other, draft, key=attrgetter("first_expiry"))
            draft = longest._replace(triggers=other.triggers | draft.triggers)
        united[key] = draft
    return united.values()

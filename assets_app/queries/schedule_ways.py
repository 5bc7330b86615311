"""The ways in which a schedule by assets becomes true for a partition, and what each way lacks.

A schedule with `|` has several ways: `(a & b) | (a & After(...))` has one with b, and one with a
time.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from assets_app.models import Schedule
from assets_app.queries.schedule_ticks import term_rules, term_text
from assets_app.queries.upstream_needs import UpstreamNeed
from slicewise.declaring import evaluate_schedule, is_after, time_terms

_SECOND = timedelta(seconds=1)
# An expression of a hundred terms may have a million ways; reasons name three.
_MOST_WAYS = 64


class Way(NamedTuple):
    """One way in which a schedule becomes true, without the assets that are ready.

    ``missing`` are the names of the assets whose needed partitions are not all materialized,
    ``old`` the names of the assets that are not fresh, and ``uncounted`` the names of the assets of
    which too many partitions are needed to tell. ``until`` is the tick that meets the times
    of the way; None without times, and where no tick to come examines the partition.
    """

    missing: frozenset[str]
    old: frozenset[str]
    uncounted: frozenset[str]
    until: datetime | None

    @property
    def is_ready(self) -> bool:
        """Whether the way needs nothing but a time."""
        return not self.lacked

    @property
    def lacked(self) -> frozenset[str]:
        """The names of the assets that are not known to be ready."""
        return self.missing | self.old | self.uncounted


class _Draft(NamedTuple):
    missing: frozenset[str] = frozenset()
    old: frozenset[str] = frozenset()
    uncounted: frozenset[str] = frozenset()
    ticks: frozenset[str] = frozenset()
    # The longest span of the terms `After`.
    seconds: int = -1

    def __or__(self, right: Any) -> "_Draft":
        return _Draft(
            self.missing | right.missing,
            self.old | right.old,
            self.uncounted | right.uncounted,
            self.ticks | right.ticks,
            max(self.seconds, right.seconds),
        )

    @property
    def asset_counts(self) -> tuple[int, int]:
        """The number of assets that the draft lacks, and of assets that are not counted."""
        return len(self.missing) + len(self.old), len(self.uncounted)

    def is_within(self, draft: "_Draft") -> bool:
        """Return whether the given draft has the same times, and lacks all assets that this draft
        lacks. Of two ways with different times, either may be met by a tick of its own.
        """
        return (
            self.missing <= draft.missing
            and self.old <= draft.old
            and self.uncounted <= draft.uncounted
            and self.ticks == draft.ticks
            and self.seconds == draft.seconds
        )


class _Ticks:
    """The ticks of a schedule that are still to examine a partition.

    ``ended_at`` is the end of the partition's window, if any. ``since`` is up to when ticks are
    handled, and ``began_at`` is when the schedule began: in a pause both are the present moment,
    since the schedule begins anew when the asset is unpaused.
    """

    def __init__(
        self, schedule: Schedule, ended_at: datetime | None, now: datetime, *, is_paused: bool
    ) -> None:
        rule = schedule.rule or {}
        self._rules = term_rules(rule)
        self._ended_at = ended_at
        self._since = now if is_paused else schedule.handled_until
        self._began_at = now if is_paused else schedule.began_at
        self._spans = {
            term_text(term): timedelta(seconds=term["seconds"])
            for term in time_terms(rule["schedule"])
            if is_after(term)
        }

    def until(self, draft: _Draft) -> datetime | None:
        """Return the tick that meets the times of a draft; None without such a tick."""
        if not draft.ticks and draft.seconds < 0:
            return None
        if self._ended_at is None:
            return self._until_without_window(draft)
        if self._ended_at <= self._began_at:
            return None
        moment = self._ended_at + timedelta(seconds=max(draft.seconds, 0))
        begin = max(moment - _SECOND, self._began_at)
        ticks = [self._rules[text].next_after(begin) for text in draft.ticks]
        met_at = _latest(ticks if draft.seconds < 0 else [moment, *ticks])
        # A window that no tick examines before is not put off until this tick.
        is_examined = met_at is not None and any(
            self._since < examined_at <= met_at for examined_at in self._examined_at(self._ended_at)
        )
        return met_at if is_examined else None

    def _until_without_window(self, draft: _Draft) -> datetime | None:
        """Return the first tick at which each of the times has ticked since the schedule began."""
        if draft.seconds >= 0:
            return None
        firsts = [self._rules[text].next_after(self._began_at) for text in draft.ticks]
        next_ticks = (self._rules[text].next_after(self._since) for text in draft.ticks)
        next_tick = min((tick for tick in next_ticks if tick is not None), default=None)
        return _latest([*firsts, next_tick])

    def _examined_at(self, ended_at: datetime) -> Iterator[datetime]:
        """Yield the first tick of each time of the schedule that examines the window."""
        for text, tick_rule in self._rules.items():
            if text in self._spans:
                yield ended_at + self._spans[text]
                continue
            tick = tick_rule.next_after(max(ended_at - _SECOND, self._began_at))
            if tick is not None:
                yield tick


def _latest(ticks: Sequence[datetime | None]) -> datetime | None:
    """Return the latest of some ticks; None where one of the ticks never comes."""
    present_ticks = [tick for tick in ticks if tick is not None]
    return max(present_ticks) if len(present_ticks) == len(ticks) else None


def ways_of(
    schedule: Schedule,
    needs: Sequence[UpstreamNeed],
    ended_at: datetime | None,
    now: datetime,
    *,
    is_paused: bool = False,
) -> list[Way]:
    """Return the ways of a schedule by assets for a partition; the way that lacks the fewest
    assets comes first. ``ended_at`` is the end of the partition's window, if any; of a paused
    asset, the ticks are the ones that count if the asset is unpaused now.

    Raises DefinitionError for a time that this version or this host cannot read.
    """
    ticks = _Ticks(schedule, ended_at, now, is_paused=is_paused)
    needs_by_name = {need.asset.name: need for need in needs}

    def of_leaf(leaf: Mapping[str, Any]) -> list[_Draft]:
        return [_draft_of(leaf, needs_by_name, now)]

    expression: Mapping[str, Any] = (schedule.rule or {})["schedule"]
    drafts = evaluate_schedule(
        expression,
        of_leaf,
        of_any=lambda operands: _least(draft for drafts in operands for draft in drafts),
        of_all=_together,
    )
    return [
        Way(draft.missing, draft.old, draft.uncounted, ticks.until(draft))
        for draft in sorted(_least(drafts), key=lambda draft: draft.asset_counts)
    ]


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
        is_fresh = need is not None and _is_fresh(need, timedelta(seconds=leaf["seconds"]), now)
        return _Draft() if is_fresh else _Draft(old=name)
    return _Draft() if need is not None and need.is_ready else _Draft(missing=name)


def _is_fresh(need: UpstreamNeed, within: timedelta, now: datetime) -> bool:
    """Return whether the newest needed partition is as fresh as a term demands."""
    if need.newest_at is None:
        return need.needs_none
    return now - need.newest_at <= within


def _together(operands: Sequence[list[_Draft]]) -> list[_Draft]:
    """Return the drafts of all operands together."""
    drafts = [_Draft()]
    for operand in operands:
        drafts = _least(draft | added for draft in drafts for added in operand)
    return drafts


def _least(drafts: Iterable[_Draft]) -> list[_Draft]:
    """Return the drafts that lack no more than any other draft with the same times, those with the
    fewest assets first.
    """
    least: list[_Draft] = []
    for draft in sorted(
        dict.fromkeys(drafts), key=lambda draft: (draft.asset_counts, len(draft.ticks))
    ):
        if not any(lesser.is_within(draft) for lesser in least):
            least.append(draft)
        if len(least) >= _MOST_WAYS:
            break
    return least

"""The ways in which a schedule by assets becomes true for a partition, and what each way lacks.

A schedule with `|` has several ways: `(a & b) | (a & After(...))` has one with b, and one with a
time.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from assets_app.models import Schedule
from assets_app.queries.schedule_ticks import term_rules, term_text
from assets_app.queries.upstream_needs import UpstreamNeed
from slicewise.declaring import evaluate_schedule, is_after

_SECOND = timedelta(seconds=1)
# An expression of a hundred terms may have a million ways; reasons name three.
_MOST_WAYS = 64


class Way(NamedTuple):
    """One way in which a schedule becomes true, without the assets that are ready.

    ``missing`` are the names of the assets whose needed partitions are not all materialized,
    ``old`` the names of the assets that are not fresh. ``until`` is when the times of the way are
    met; None without times.
    """

    missing: frozenset[str]
    old: frozenset[str]
    until: datetime | None

    @property
    def is_ready(self) -> bool:
        """Whether the way needs nothing but a time."""
        return not self.missing and not self.old


class _Draft(NamedTuple):
    missing: frozenset[str] = frozenset()
    old: frozenset[str] = frozenset()
    ticks: frozenset[str] = frozenset()
    # The longest span of the terms `After`.
    seconds: int = -1

    def __or__(self, right: Any) -> "_Draft":
        return _Draft(
            self.missing | right.missing,
            self.old | right.old,
            self.ticks | right.ticks,
            max(self.seconds, right.seconds),
        )

    @property
    def asset_count(self) -> int:
        return len(self.missing) + len(self.old)

    def is_within(self, draft: "_Draft") -> bool:
        """Return whether the given draft lacks all that this draft lacks."""
        return (
            self.missing <= draft.missing
            and self.old <= draft.old
            and self.ticks <= draft.ticks
            and self.seconds <= draft.seconds
        )


def ways_of(
    schedule: Schedule, needs: Sequence[UpstreamNeed], ended_at: datetime | None, now: datetime
) -> list[Way]:
    """Return the ways of a schedule by assets for a partition; the way that lacks the fewest
    assets comes first. ``ended_at`` is the end of the partition's window, if any.
    """
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
    ways = [
        Way(draft.missing, draft.old, _until(draft, schedule, ended_at)) for draft in _least(drafts)
    ]
    return sorted(ways, key=lambda way: len(way.missing) + len(way.old))


def _draft_of(
    leaf: Mapping[str, Any], needs_by_name: Mapping[str, UpstreamNeed], now: datetime
) -> _Draft:
    if is_after(leaf):
        return _Draft(seconds=leaf["seconds"])
    if "name" not in leaf:
        return _Draft(ticks=frozenset({term_text(leaf)}))
    need = needs_by_name.get(leaf["name"])
    if need is None:
        # The asset is read whatever partitions exist.
        return _Draft()
    name = frozenset({leaf["name"]})
    if leaf["kind"] == "fresh":
        within = timedelta(seconds=leaf["seconds"])
        is_fresh = need.newest_at is not None and now - need.newest_at <= within
        return _Draft() if is_fresh else _Draft(old=name)
    return _Draft(missing=name) if need.missing or need.upstream_gap else _Draft()


def _together(operands: Sequence[list[_Draft]]) -> list[_Draft]:
    """Return the drafts of all operands together."""
    drafts = [_Draft()]
    for operand in operands:
        drafts = _least(draft | added for draft in drafts for added in operand)
    return drafts


def _least(drafts: Iterable[_Draft]) -> list[_Draft]:
    """Return the drafts that lack no more than any other, those with the fewest assets first."""
    least: list[_Draft] = []
    for draft in sorted(
        dict.fromkeys(drafts), key=lambda draft: (draft.asset_count, len(draft.ticks))
    ):
        if not any(lesser.is_within(draft) for lesser in least):
            least.append(draft)
        if len(least) >= _MOST_WAYS:
            break
    return least


def _until(draft: _Draft, schedule: Schedule, ended_at: datetime | None) -> datetime | None:
    """Return when the times of a way are met: for a window, by the first tick after its end."""
    if ended_at is None:
        # Each tick makes a partition without a window due again.
        return schedule.next_at if draft.ticks else None
    after = ended_at + timedelta(seconds=draft.seconds) if draft.seconds >= 0 else None
    moments = [] if after is None else [after]
    if draft.ticks:
        tick_rules = term_rules(schedule.rule or {})
        begin = max((after or ended_at) - _SECOND, schedule.began_at)
        ticks = [tick_rules[text].next_after(begin) for text in draft.ticks]
        moments += [tick for tick in ticks if tick is not None]
    return max(moments, default=None)

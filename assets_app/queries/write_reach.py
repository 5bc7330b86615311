"""The upstream assets whose next write does not concern a partition, in words.

The answer comes from the function by which the scheduler finds the partitions that a write
concerns.
"""

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import reduce
from operator import or_
from typing import NamedTuple

from django.conf import settings

import slicewise
from assets_app.models import Asset, Schedule
from assets_app.queries.reason_texts import moment_text
from assets_app.queries.upstream_needs import UpstreamNeed
from partitions_app.concerned import concerned_partitions
from partitions_app.edges import Edge
from partitions_app.rules import has_time
from slicewise.declaring import schedule_names

_MOMENT = timedelta(microseconds=1)

log = logging.getLogger(__name__)


class _Bound(Enum):
    """Why a write does not concern a partition."""

    SCHEDULE = 1
    WRITE_BEFORE = 2
    NEWEST = 3


class _Miss(NamedTuple):
    """An asset of which some writes, or all writes, do not concern the partition."""

    name: str
    # None where the partitions that a write concerns cannot be computed.
    bound: _Bound | None
    is_always: bool


class _View(NamedTuple):
    """A partition whose window has ended, if the partition has one, and the schedule's view of it.

    The schedule follows writes since ``since``, and begins anew when its asset is unpaused.
    """

    key: str
    ended_at: datetime | None
    since: datetime
    begins_anew: bool
    now: datetime


@dataclass(frozen=True, slots=True)
class WriteReach:
    """The assets whose next write concerns a partition, or does not.

    ``concerning`` are the names of the assets of which a write of each needed partition concerns
    the partition, and ``unconcerning`` those of which no write does. ``texts`` say which partitions
    the writes of all other assets concern.
    """

    concerning: frozenset[str]
    unconcerning: frozenset[str]
    texts: tuple[str, ...]


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


def write_reach(
    asset: Asset,
    schedule: Schedule,
    needs: Sequence[UpstreamNeed],
    key: str,
    ended_at: datetime | None,
    now: datetime,
) -> WriteReach:
    """Return which assets of a schedule have a next write that concerns the partition of a key,
    whose window has ended, if the partition has one.
    """
    view = _View(key, ended_at, schedule.followed_since, asset.paused, now)
    needs = [need for need in followed_needs(schedule, needs) if need.needed]
    misses = [miss for need in needs if (miss := _miss(need, needs, view))]
    names = frozenset(need.asset.name for need in needs)
    return WriteReach(
        concerning=names - {miss.name for miss in misses},
        unconcerning=frozenset(miss.name for miss in misses if miss.is_always),
        texts=tuple(_texts(misses, view)),
    )


def _miss(need: UpstreamNeed, needs: Sequence[UpstreamNeed], view: _View) -> _Miss | None:
    """Return a reason why writes of an asset do not concern the partition, if there is one: first
    a reason that holds for all writes.
    """
    edge, ended_at, name = need.edge, view.ended_at, need.asset.name
    miss: _Miss | None = None
    if edge is None or edge.downstream is None:
        return None
    if edge.has_common_needs and ended_at is not None:
        if view.begins_anew or ended_at <= view.since:
            return _Miss(name, _Bound.SCHEDULE, is_always=True)
        if not has_time(edge.upstream) and need.last_tick_at and ended_at <= need.last_tick_at:
            is_always = need.first_tick_at is not None and ended_at <= need.first_tick_at
            miss = _Miss(name, _Bound.WRITE_BEFORE, is_always)
    if not need.ends:
        return miss
    together = [sibling for sibling in needs if _are_written_together(need, sibling)]
    # A write of a later partition concerns later partitions, which count first.
    try:
        reached = [_is_among_newest(together, end, view) for end in (0, -1)]
    except Exception:  # a mapping of a package may raise anything: the schedule fails by it too
        log.exception("partitions of a write not computed", extra={"asset": name})
        return _Miss(name, None, is_always=False)
    if not all(reached) and not (miss and miss.is_always):
        return _Miss(name, _Bound.NEWEST, is_always=not any(reached))
    return miss


class _FirstWrite(NamedTuple):
    """The first write of a partition, now."""

    key: str
    at: datetime
    before: None = None


def _are_written_together(need: UpstreamNeed, sibling: UpstreamNeed) -> bool:
    """Return whether one function writes both assets, so that one run does."""
    producer_id = need.asset.producer_id
    return sibling is need or (producer_id is not None and producer_id == sibling.asset.producer_id)


def _is_among_newest(together: Sequence[UpstreamNeed], end: int, view: _View) -> bool:
    """Return whether a partition is among the newest ones that a write of upstream partitions
    concerns, as many as one write may queue: the first or the last needed partition of each asset
    that a run writes.
    """
    concerned = reduce(
        or_,
        (
            _concerned(need.edge, need.ends[end], view)
            for need in together
            if need.edge is not None and need.ends
        ),
    )
    most, definition = settings.MAX_PARTITIONS_PER_TICK, concerned.definition
    if definition is None or len(concerned) <= most:
        return True
    return definition.parse(view.key) in concerned[len(concerned) - most :]


def _concerned(edge: Edge, upstream_key: str, view: _View) -> slicewise.PartitionSet:
    since = view.since
    if edge.has_common_needs and view.ended_at is not None:
        # Partitions before the one in view do not matter, and may be many.
        since = max(since, view.ended_at - _MOMENT)
    writes = [_FirstWrite(upstream_key, view.now)]
    return concerned_partitions(edge, writes, since=since, now=view.now)


def _texts(misses: Collection[_Miss], view: _View) -> Iterator[str]:
    """Yield a sentence for each bound: which partitions writes of these assets make due."""
    for bound in _Bound:
        names = sorted(miss.name for miss in misses if miss.bound is bound)
        if names:
            text = _bound_text(bound, view)
            yield f"A write of {names_text(names, 'or')} makes due only {text}."


def _bound_text(bound: _Bound, view: _View) -> str:
    match bound:
        case _Bound.SCHEDULE:
            return f"time windows that ended since the schedule began at {moment_text(view.since)}"
        case _Bound.WRITE_BEFORE:
            return "time windows that ended since the write before, backfills aside"
        case _Bound.NEWEST:
            most = settings.MAX_PARTITIONS_PER_TICK
            return f"the newest {most:,} partitions that need the written ones"

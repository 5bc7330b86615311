"""The settled states of an asset's partitions, with those in progress or stale among each state."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from assets_app.queries.counts import HeldCounts
from assets_app.queries.stale_counts import StaleCount
from partitions_app.state_badges import STALE, URGENT_FIRST, StateBadge


class SharePart(NamedTuple):
    """A number of partitions "running", "queued" or "stale"; at least so many where ``is_cut``."""

    name: str
    number: int
    is_cut: bool = False


class UrgentState(NamedTuple):
    """A state that needs attention, and the number of partitions in the state; at least so many
    where ``is_cut``.
    """

    look: StateBadge
    number: int
    is_cut: bool


def urgent_states(counts: Mapping[str, int], stale: StaleCount) -> list[UrgentState]:
    """Return the states that have partitions by ``counts``, the most urgent state first."""
    numbers = {**counts, STALE.name: stale.number}
    return [
        UrgentState(look, number, look is STALE and stale.is_cut)
        for look in URGENT_FIRST
        if (number := numbers.get(look.name, 0))
    ]


class StateShare(NamedTuple):
    """The number of partitions in a settled state, and the parts that are in progress or stale."""

    state: str
    number: int
    parts: Sequence[SharePart]


def state_shares(
    settled: Iterable[tuple[str, int]],
    held_by_state: Mapping[str, HeldCounts],
    stale: StaleCount,
) -> list[StateShare]:
    """Return the states with their parts, without empty parts. A state has no parts that are more
    than its partitions: a run may hold partitions that are not expected yet.
    """
    return [
        StateShare(state, number, parts if sum(part.number for part in parts) <= number else ())
        for state, number in settled
        for parts in [_parts(state, held_by_state.get(state, HeldCounts()), stale)]
    ]


def divided_count(shares: Iterable[StateShare]) -> int:
    """Return the number of partitions in the parts of all shares."""
    return sum(part.number for share in shares for part in share.parts)


def _parts(state: str, held: HeldCounts, stale: StaleCount) -> list[SharePart]:
    parts = [SharePart("running", held.running), SharePart("queued", held.queued)]
    if state == "materialized":
        parts.append(SharePart("stale", stale.number, stale.is_cut))
    return [part for part in parts if part.number]

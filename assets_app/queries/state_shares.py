"""The settled states of an asset's partitions, with those in progress or stale among each state."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from assets_app.queries.counts import HeldCounts
from assets_app.queries.stale_counts import StaleCount
from partitions_app.state_badges import STALE, URGENT_FIRST, StateBadge


class Subcount(NamedTuple):
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
    """The number of partitions in a settled state, and those in progress or stale by number."""

    state: str
    number: int
    subcounts: Sequence[Subcount]

    @property
    def undivided(self) -> int:
        """The number without the partitions in progress or stale."""
        return self.number - sum(subcount.number for subcount in self.subcounts)


def state_shares(
    settled: Iterable[tuple[str, int]],
    held_by_state: Mapping[str, HeldCounts],
    stale: StaleCount,
) -> list[StateShare]:
    """Return the states with the numbers in progress or stale, without zeros. A state whose
    partitions are fewer has no such numbers: a run may hold partitions that are not expected yet.
    """
    shares = []
    for state, number in settled:
        subcounts = _subcounts(state, held_by_state.get(state, HeldCounts()), stale)
        has_room = sum(subcount.number for subcount in subcounts) <= number
        shares.append(StateShare(state, number, subcounts if has_room else ()))
    return shares


def divided_count(shares: Iterable[StateShare]) -> int:
    """Return the number of partitions in the subcounts of all shares."""
    return sum(subcount.number for share in shares for subcount in share.subcounts)


def _subcounts(state: str, held_counts: HeldCounts, stale: StaleCount) -> list[Subcount]:
    subcounts = [Subcount("running", held_counts.running), Subcount("queued", held_counts.queued)]
    if state == "materialized":
        subcounts.append(Subcount("stale", stale.number, stale.is_cut))
    return [subcount for subcount in subcounts if subcount.number]

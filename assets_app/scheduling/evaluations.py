"""Evaluations: whether a schedule makes a partition due, by the status of its inputs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from assets_app.models import LateEffect, LateReason
from assets_app.scheduling.expressions import Match, News, Tick, matches_by_moment
from assets_app.scheduling.late_inputs import LateStatus
from assets_app.scheduling.tick_terms import PresentVersion, TickTerms
from slicewise.declaring import fresh_names, schedule_terms
from slicewise.partitions import Nonexistent, PartitionRow


class UpstreamStatus(NamedTuple):
    """The status of one upstream asset for a partition: needed and materialized partitions.

    ``needed`` counts the ``nonexistent`` partitions as well, which keep the partition from being
    ready. ``excluded`` partitions are needed by no partition.
    """

    needed: int
    materialized: int
    is_newer: bool
    # The first few keys that exist and are missing.
    missing: Sequence[str] = ()
    nonexistent: Nonexistent = Nonexistent()
    excluded: int = 0
    # No partition is left to need: all are excluded, or the mapping ignores the nonexistent ones.
    needs_none: bool = False
    # A version is newer than the version that the last run did read.
    is_changed: bool = False
    # When the newest of the materialized partitions was materialized.
    newest_at: datetime | None = None

    @property
    def is_ready(self) -> bool:
        """Whether all needed partitions are materialized."""
        return self.needs_none or self.materialized >= self.needed > 0

    def is_fresh(self, seconds: int, now: datetime) -> bool:
        """Return whether the newest materialization is no older than so many seconds."""
        if self.newest_at is None:
            return self.needs_none
        return now - self.newest_at <= timedelta(seconds=seconds)


NOTHING = UpstreamStatus(0, 0, False)
Leaf = Mapping[str, Any]
OfLeaf = Callable[[datetime | None, Leaf], set[Match]]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A downstream partition, and its status with each asset of its schedule, by name."""

    row: PartitionRow
    upstream_statuses: Mapping[str, UpstreamStatus]
    # The schedule is met, whether or not an upstream partition is newer or a tick is due.
    is_ready: bool
    is_due: bool
    # Due by a tick, whether or not assets alone make the partition due as well.
    is_due_by_tick: bool = False
    # A tick to come makes the partition due if nothing else changes.
    waits_for_tick: bool = False
    # The partition has data.
    is_made: bool = False
    # Only the age of an asset that is to be fresh keeps the partition from being due.
    waits_for_fresh: bool = False
    # Of a due partition: the inputs without which the partition is made, and the effect of the
    # inputs when they come.
    late: Sequence[LateStatus] = ()
    late_effect: LateEffect = LateEffect.SCHEDULE


@dataclass(frozen=True, slots=True)
class Case:
    """A partition whose schedule is evaluated as of now, and as of the next tick."""

    schedule: Mapping[str, Any]
    row: PartitionRow
    statuses: Mapping[str, UpstreamStatus]
    now: datetime
    times: TickTerms | None
    present: PresentVersion
    upstream_ids: Mapping[str, int]
    # The names of inputs that were late, and make the partition again once they are there.
    remade_by: Collection[str]

    def evaluate(self) -> Evaluation:
        """Return the evaluation."""
        is_open = self._is_open
        due = [
            match
            for match in self._present_matches(self._at_present)
            if match.is_due(is_open=is_open)
        ]
        if self.times is None:
            expected = self._present_matches(self._at_present)
        else:
            expected = self._matches(self._at_next_tick, self.times.moments(self.row))
        has_fresh = bool(fresh_names(self.schedule))
        is_tolerant = self.times is not None or has_fresh
        return Evaluation(
            self.row,
            self.statuses,
            is_ready=any(not match.is_spent for match in expected),
            is_due=bool(due),
            is_due_by_tick=any(match.tick is not Tick.NO_TIME for match in due),
            waits_for_tick=not due and any(match.is_due(is_open=is_open) for match in expected),
            is_made=self.present.version > 0,
            waits_for_fresh=has_fresh and not due and self._waits_for_fresh(),
            late=self._late() if due and is_tolerant else (),
            late_effect=_late_effect(due),
        )

    @property
    def _is_open(self) -> bool:
        if self.row.end is None:
            return True
        began_at = None if self.times is None else self.times.began_at
        return self.present.version == 0 and (began_at is None or self.row.end > began_at)

    def _present_matches(self, of_leaf: OfLeaf) -> set[Match]:
        moments = [] if self.times is None else self.times.moments(self.row)
        return self._matches(of_leaf, [moment for moment in moments if moment <= self.now])

    def _matches(self, of_leaf: OfLeaf, moments: Sequence[datetime]) -> set[Match]:
        return matches_by_moment(self.schedule, of_leaf, moments)

    def _at_present(self, after: datetime | None, leaf: Leaf) -> set[Match]:
        if "name" in leaf:
            return self._asset_matches(leaf)
        if self.times is None:
            return set()
        return self.times.matches(leaf, self.row, self.present, after)

    def _at_next_tick(self, after: datetime | None, leaf: Leaf) -> set[Match]:
        if "name" in leaf:
            return self._asset_matches(leaf)
        if self.times is None:
            return set()
        return self.times.matches_at_next(leaf, self.row, self.present, after)

    def _asset_matches(self, leaf: Leaf) -> set[Match]:
        """Return the match of an asset with the schedule; no match while the asset is not ready,
        or not fresh.
        """
        status = self.statuses.get(leaf["name"], NOTHING)
        if leaf["kind"] == "fresh":
            if not status.is_fresh(leaf["seconds"], self.now):
                return set()
            # A run that was late may have read the version that came before the run began.
            is_back = leaf["name"] in self.remade_by and status.is_newer
            return {Match(Tick.NO_TIME, News.NEWER if is_back else News.FRESH)}
        if not status.is_ready:
            return set()
        return {Match(Tick.NO_TIME, News.NEWER if status.is_newer else News.OLD)}

    def _waits_for_fresh(self) -> bool:
        """Return whether the partition were due, now or at the next tick, with all assets fresh."""

        def if_fresh(of_leaf: OfLeaf) -> OfLeaf:
            def of_fresh_leaf(after: datetime | None, leaf: Leaf) -> set[Match]:
                is_fresh_term = leaf["kind"] == "fresh"
                return {Match(Tick.NO_TIME, News.FRESH)} if is_fresh_term else of_leaf(after, leaf)

            return of_fresh_leaf

        expected = self._present_matches(if_fresh(self._at_present))
        if self.times is not None:
            moments = self.times.moments(self.row)
            expected |= self._matches(if_fresh(self._at_next_tick), moments)
        return any(match.is_due(is_open=self._is_open) for match in expected)

    def _late(self) -> list[LateStatus]:
        """Return the inputs of the schedule that are missing or old."""
        late: dict[str, LateStatus] = {}
        for leaf in schedule_terms(self.schedule):
            status = self.statuses.get(leaf.get("name", ""))
            if status is None or leaf["name"] in late:
                continue
            missing = max(status.needed - status.materialized, 0)
            if leaf["kind"] == "fresh":
                if status.is_fresh(leaf["seconds"], self.now):
                    continue
                reason = LateReason.MISSING if status.newest_at is None else LateReason.OLD
                late[leaf["name"]] = LateStatus(
                    self.upstream_ids[leaf["name"]],
                    reason,
                    missing,
                    status.missing,
                    status.newest_at,
                    is_of_fresh=True,
                )
            elif not status.is_ready:
                late[leaf["name"]] = LateStatus(
                    self.upstream_ids[leaf["name"]],
                    LateReason.MISSING,
                    missing,
                    status.missing,
                    status.newest_at,
                )
        return list(late.values())


def _late_effect(due: Sequence[Match]) -> LateEffect:
    """Return the effect of a late input when the input comes: as the schedule says, unless only
    terms `After` have made the partition due.
    """
    if any(match.after is None for match in due):
        return LateEffect.SCHEDULE
    return LateEffect.REMAKE if any(match.remakes for match in due) else LateEffect.STALE

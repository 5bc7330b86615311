"""Cells that stand for several partitions: their numbers by state, in words and as shares."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from partitions_app.state_badges import (
    FAILED,
    MATERIALIZED,
    MISSING,
    NOT_YET_DUE,
    OVERDUE,
    RUNNING,
    STALE,
    StateBadge,
    badge_of_partition,
)

# The number of partitions of a period in each settled state, in "held": claimed by a run, in
# "overdue": missing, and not there in time, and in "stale": materialized, and upstream has changed.
# The number in "missing" includes overdue partitions, the number in "materialized" stale ones.
Counts = Mapping[str, int]
# Counts by the first day of the cell and the segment.
Bucketed = Mapping[tuple[date, str], Counts]


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a cell of many partitions that has one state: offset and width, in percent."""

    css: str
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class ShareLooks:
    """The looks of the states that assets and backfills name differently: of materialized
    partitions, partitions of a run that has not ended, and partitions in no other state.
    """

    materialized: StateBadge
    held: StateBadge
    rest: StateBadge


ASSET_LOOKS = ShareLooks(MATERIALIZED, RUNNING, MISSING)


@dataclass(frozen=True, slots=True)
class AggregateCell:
    """A cell of many partitions, with the number of partitions in each state."""

    name: str
    expected: int
    not_yet_due: int
    counts: Counts
    href: str
    inside: str = ""
    # The first day of the cell's day, month or year.
    start: date | None = None
    looks: ShareLooks = ASSET_LOOKS

    @property
    def count_text(self) -> str:
        """``20/24``: materialized partitions, stale or not, and partitions that should exist;
        ``24`` for all.
        """
        due = max(self.expected - self.not_yet_due, self._settled)
        materialized = self.counts.get("materialized", 0)
        if not due:
            return ""
        if materialized == due:
            return _short(due)
        return f"{_short(materialized)}/{_short(due)}"

    @property
    def overdue(self) -> int:
        """The number of missing partitions that are not there in time."""
        return self.counts.get("overdue", 0)

    @property
    def stale(self) -> int:
        """The number of materialized partitions whose upstream has changed since."""
        return min(self.counts.get(STALE.name, 0), self.counts.get("materialized", 0))

    @property
    def fresh(self) -> int:
        """The number of materialized partitions that are not stale."""
        return self.counts.get("materialized", 0) - self.stale

    @property
    def missing(self) -> int:
        """The number of partitions that should exist by now, minus partitions in another state."""
        return max(self.expected - self.not_yet_due - self._settled - self.overdue, 0)

    @property
    def _settled(self) -> int:
        """The number of partitions in a state other than missing and overdue."""
        counted_otherwise = (MISSING.name, OVERDUE.name, STALE.name)
        return sum(count for state, count in self.counts.items() if state not in counted_otherwise)

    @property
    def look(self) -> StateBadge | None:
        """The look of all partitions of the cell; None for partitions in different states."""
        counts = {**self.counts, "materialized": self.fresh, "stale": self.stale}
        present = {state: count for state, count in counts.items() if count}
        present.pop("missing", None)
        if not present and not self.missing:
            return NOT_YET_DUE
        if not present:
            return self.looks.rest
        if self.missing or len(present) > 1:
            return None
        (state,) = present
        return self._own_looks.get(state) or badge_of_partition(state)

    @property
    def _own_looks(self) -> dict[str, StateBadge]:
        return {"materialized": self.looks.materialized, "held": self.looks.held}

    @property
    def alarming(self) -> bool:
        """Whether a partition of the cell failed."""
        return bool(self.counts.get("failed"))

    @property
    def shares(self) -> list[Share]:
        """Materialized, stale, failed, running, other, overdue, from left to right; missing is
        blank.
        """
        counts = self.counts
        other_count = counts.get("canceled", 0) + counts.get("skipped", 0)
        class_counts = (
            ("good", self.fresh),
            ("stale", self.stale),
            ("bad", counts.get("failed", 0)),
            ("info", counts.get("held", 0)),
            ("other", other_count),
            ("overdue", self.overdue),
        )
        total = max(self.expected, sum(count for _, count in class_counts), 1)
        shares, x = [], 0.0
        for css, count in class_counts:
            if count:
                width = round(100 * count / total, 1)
                shares.append(Share(css, round(x, 1), width))
                x += width
        return shares

    @property
    def title(self) -> str:
        """The name of the cell and the number of partitions in each state, in words."""
        label_counts = [
            (self.fresh, self.looks.materialized.label),
            (self.stale, STALE.label),
            (self.counts.get("failed", 0), FAILED.label),
            (self.counts.get("held", 0), self.looks.held.label),
            (self.counts.get("canceled", 0), "Canceled"),
            (self.counts.get("skipped", 0), "Skipped"),
            (self.overdue, OVERDUE.label),
            (self.missing, self.looks.rest.label),
            (self.not_yet_due, NOT_YET_DUE.label),
        ]
        text = ", ".join(f"{count:,} {label.lower()}" for count, label in label_counts if count)
        return f"{self.name}: {text or 'no partitions'}"


def _short(number: int) -> str:
    """Return a count in at most four characters: ``999``, ``9.9k``, ``12k``, ``1.2M``."""
    for limit, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= limit:
            count = number / limit
            return f"{count:.1f}{unit}" if count < 10 and number % limit else f"{int(count)}{unit}"
    return str(number)

"""The counts of a backfill, or of one of its assets, and the summary for pages, programs and
commands.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from backfills_app.models import BackfillAsset


class Phrase(NamedTuple):
    """A phrase of the summary, such as `2 failed`, and the state that the phrase counts."""

    state: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The number of partitions by state. Partitions without a row yet are counted as waiting."""

    total: int
    succeeded: int
    failed: int
    canceled: int
    skipped: int
    active: int
    waiting: int

    @property
    def ended(self) -> int:
        """The number of partitions that succeeded, failed, were canceled or were skipped."""
        return self.succeeded + self.failed + self.canceled + self.skipped

    @property
    def left(self) -> int:
        """The number of partitions that have not ended."""
        return self.total - self.ended

    @property
    def percent_made(self) -> int:
        """The percentage of partitions that succeeded, rounded down, so that 100 means all."""
        return 100 * self.succeeded // self.total if self.total else 0

    @property
    def percent_done(self) -> int:
        """The percentage of partitions that have ended, rounded down, so that 100 means all."""
        return 100 * self.ended // self.total if self.total else 0

    @property
    def phrases(self) -> tuple[Phrase, ...]:
        """A phrase for succeeded partitions, and phrases for partitions that ended otherwise."""
        succeeded_phrase = Phrase("succeeded", f"{self.succeeded:,} of {self.total:,} materialized")
        other_counts = {"failed": self.failed, "canceled": self.canceled, "skipped": self.skipped}
        other_phrases = (
            Phrase(state, f"{number:,} {state}") for state, number in other_counts.items()
        )
        return (
            succeeded_phrase,
            *(phrase for phrase in other_phrases if other_counts[phrase.state]),
        )

    @property
    def text(self) -> str:
        """``2 of 51 materialized, 1 failed, 48 canceled``."""
        return ", ".join(phrase.text for phrase in self.phrases)

    def unfinished(self) -> Iterator[tuple[str, int]]:
        """Yield the states of unfinished partitions with their counts, without empty ones."""
        states = ("active", "waiting")
        return ((state, number) for state, number in self.by_state() if state in states)

    def by_state(self) -> Iterator[tuple[str, int]]:
        """Yield the states of partitions with their counts, without empty ones."""
        for state in ("succeeded", "failed", "canceled", "skipped", "active", "waiting"):
            if number := getattr(self, state):
                yield state, number


def counts_of(assets: "Iterable[BackfillAsset]") -> Counts:
    """Return the sums of the counts that the assets keep."""
    rows = list(assets)
    return Counts(
        total=sum(row.total for row in rows),
        succeeded=sum(row.succeeded for row in rows),
        failed=sum(row.failed for row in rows),
        canceled=sum(row.canceled for row in rows),
        skipped=sum(row.skipped for row in rows),
        active=sum(row.active for row in rows),
        waiting=sum(row.waiting + row.total - row.expanded for row in rows),
    )

"""How far a backfill has come: counts, rate, time left, and the pieces of its bar."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from backfills_app.models import Backfill, BackfillAsset, BackfillState
from backfills_app.queries.counts import Counts, counts_of
from backfills_app.queries.pace import Pace, paces_of
from partitions_app.templatetags.slicewise_pages import duration

_UNKNOWN = Pace()


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of the bar, of 100."""

    css: str
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Progress:
    """A backfill and the sums of its assets' counts, or one of its assets and its counts."""

    backfill: Backfill
    counts: Counts
    pace: Pace = _UNKNOWN
    part: BackfillAsset | None = None

    @property
    def per_second(self) -> float | None:
        """Partitions a second, of late."""
        return self.pace.per_second

    @property
    def version(self) -> str:
        """Changes with everything that is shown of it."""
        numbers = ".".join(f"{state}{number}" for state, number in self.counts.by_state())
        asked = self.backfill
        settings = (asked.max_active_runs, asked.group.priority, asked.order, asked.deleted)
        changed = ".".join(str(value) for value in settings)
        runs = f"{self.pace.running}.{self.pace.queued}"
        return f"{asked.pk}.{asked.state}.{numbers}.{runs}.{changed}.{self.left_text}"

    @property
    def left_text(self) -> str:
        """Time left in words; empty where it is not known, and while nothing new starts."""
        return duration(self.left) if self.left is not None else ""

    @property
    def stands(self) -> str:
        """What the state alone does not say: what goes on although it is paused or canceling."""
        running = self.pace.running
        if not running or self.backfill.state not in (
            BackfillState.PAUSED,
            BackfillState.CANCELING,
        ):
            return ""
        return f"{running:,} still running"

    @property
    def rate(self) -> str:
        """Partitions per second or minute, with the unit; empty where too few were made."""
        if not self.per_second:
            return ""
        if self.per_second >= 1:
            return f"{self.per_second:.1f} partitions/s"
        return f"{60 * self.per_second:.1f} partitions/min"

    @property
    def left(self) -> timedelta | None:
        """Time left at this rate."""
        if not self.per_second or self.backfill.ended or self.backfill.group.paused:
            return None
        return timedelta(seconds=self.counts.left / self.per_second)

    @property
    def bar(self) -> list[Piece]:
        """Succeeded, failed, canceled and skipped, and what runs now."""
        kinds = (
            ("good", "succeeded"),
            ("bad", "failed"),
            ("neutral", "canceled"),
            ("faint", "skipped"),
            ("info", "active"),
        )
        pieces, x, numbers = [], 0.0, dict(self.counts.by_state())
        for css, state in kinds:
            if state in numbers:
                width = 100 * numbers[state] / max(self.counts.total, 1)
                pieces.append(Piece(css, round(x, 2), round(width, 2)))
                x += width
        return pieces


def progress_of(backfill: Backfill, pace: Pace | None = None) -> Progress:
    """The progress of a backfill whose assets are at hand."""
    return Progress(backfill, counts_of(backfill.assets.all()), pace or _UNKNOWN)


def part_progress(backfill: Backfill, part: BackfillAsset) -> Progress:
    """The progress of one asset of a backfill."""
    return Progress(backfill, counts_of([part]), part=part)


def progress_with_pace(backfills: Sequence[Backfill]) -> list[Progress]:
    """The progress of several, with their pace: one statement."""
    paces = paces_of(backfills, timezone.now()) if backfills else {}
    return [progress_of(backfill, paces.get(backfill.pk)) for backfill in backfills]

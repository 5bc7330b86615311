"""The progress of a backfill: counts, rate, time left, and the sections of the progress bar."""

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
class BarSegment:
    """A section of the progress bar, which has the width 100."""

    css: str
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Progress:
    """A backfill with the summed counts of its assets, or one of its assets with the asset's
    counts.
    """

    backfill: Backfill
    counts: Counts
    pace: Pace = _UNKNOWN
    part: BackfillAsset | None = None

    @property
    def per_second(self) -> float | None:
        """The recent rate in partitions per second."""
        return self.pace.per_second

    @property
    def version(self) -> str:
        """A text that changes with all values that are shown."""
        numbers = ".".join(f"{state}{number}" for state, number in self.counts.by_state())
        backfill = self.backfill
        settings = (
            backfill.max_active_runs,
            backfill.group.priority,
            backfill.order,
            backfill.deleted,
        )
        settings_text = ".".join(str(value) for value in settings)
        runs = f"{self.pace.running}.{self.pace.queued}"
        return f"{backfill.pk}.{backfill.state}.{numbers}.{runs}.{settings_text}.{self.left_text}"

    @property
    def left_text(self) -> str:
        """The time left in words; empty where unknown, and while no run starts."""
        return duration(self.left) if self.left is not None else ""

    @property
    def stands(self) -> str:
        """The number of active runs of a backfill that is paused or canceling, which its state does
        not tell.
        """
        running = self.pace.running
        if not running or self.backfill.state not in (
            BackfillState.PAUSED,
            BackfillState.CANCELING,
        ):
            return ""
        return f"{running:,} still running"

    @property
    def rate(self) -> str:
        """The rate in partitions per second or minute, with the unit; empty where too few have
        ended.
        """
        if not self.per_second:
            return ""
        if self.per_second >= 1:
            return f"{self.per_second:.1f} partitions/s"
        return f"{60 * self.per_second:.1f} partitions/min"

    @property
    def left(self) -> timedelta | None:
        """The time left at this rate; None where unknown."""
        if not self.per_second or self.backfill.ended or self.backfill.group.paused:
            return None
        return timedelta(seconds=self.counts.left / self.per_second)

    @property
    def bar(self) -> list[BarSegment]:
        """The sections of the bar: succeeded, failed, canceled, skipped and active partitions."""
        kinds = (
            ("good", "succeeded"),
            ("bad", "failed"),
            ("neutral", "canceled"),
            ("faint", "skipped"),
            ("info", "active"),
        )
        sections, x, numbers = [], 0.0, dict(self.counts.by_state())
        for css, state in kinds:
            if state in numbers:
                width = 100 * numbers[state] / max(self.counts.total, 1)
                sections.append(BarSegment(css, round(x, 2), round(width, 2)))
                x += width
        return sections


def progress_of(backfill: Backfill, pace: Pace | None = None) -> Progress:
    """Return the progress of a backfill whose assets are loaded."""
    return Progress(backfill, counts_of(backfill.assets.all()), pace or _UNKNOWN)


def part_progress(backfill: Backfill, asset_row: BackfillAsset) -> Progress:
    """Return the progress of one asset of a backfill."""
    return Progress(backfill, counts_of([asset_row]), part=asset_row)


def progress_with_pace(backfills: Sequence[Backfill]) -> list[Progress]:
    """Return the progress of several backfills, with their pace: one query."""
    paces = paces_of(backfills, timezone.now()) if backfills else {}
    return [progress_of(backfill, paces.get(backfill.pk)) for backfill in backfills]

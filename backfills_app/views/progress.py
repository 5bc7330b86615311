"""The progress of a backfill: counts, rate, time left, and the sections of the progress bar."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from assets_app.queries.clock import database_now
from backfills_app.models import Backfill, BackfillAsset, BackfillState
from backfills_app.queries.counts import Counts, counts_of
from backfills_app.queries.pace import Pace, paces_of, running_by_asset
from backfills_app.queries.pauses import Pause, pauses_of
from partitions_app.templatetags.slicewise_pages import rounded_duration
from slicewise_server.web.listing import version_of

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
    backfill_asset: BackfillAsset | None = None
    # None for a backfill that is not paused.
    pause: Pause | None = None

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
            self.pause and self.pause.paused_at.timestamp(),
        )
        settings_text = ".".join(str(value) for value in settings)
        runs = f"{self.pace.running}.{self.pace.queued}.{self.running}.{self.pace.dispatched}"
        time_left = f"{self.left_text}.{self.silent_since}"
        # A digest: the address of a poll holds the version, and errors may hold secrets.
        errors = version_of(
            (backfill.error, backfill.stalled_error, backfill.stalled_since, backfill.try_again_at)
        )
        shown = (backfill.state, numbers, runs, settings_text, time_left, errors)
        return f"{backfill.pk}.{'.'.join(shown)}"

    @property
    def running(self) -> int:
        """The number of active partitions whose run has begun."""
        return min(self.pace.running_partitions, self.counts.active)

    @property
    def unfinished(self) -> list[tuple[str, int]]:
        """The states of the unfinished partitions with counts, without empty ones: active
        partitions are running, or queued.
        """
        numbers = {
            "running": self.running,
            "queued": self.counts.active - self.running,
            "waiting": self.counts.waiting,
        }
        return [(state, number) for state, number in numbers.items() if number]

    @property
    def states(self) -> list[tuple[str, int]]:
        """The states of all partitions with counts, without empty ones."""
        ended = [pair for pair in self.counts.by_state() if pair[0] not in ("active", "waiting")]
        return [*ended, *self.unfinished]

    @property
    def left_text(self) -> str:
        """The time left in words, rounded; empty where unknown, and while no run starts."""
        return rounded_duration(self.left) if self.left is not None else ""

    @property
    def silent_since(self) -> datetime | None:
        """The end of the last run, where no run has ended for much longer than the pace says."""
        return self.pace.silent_since

    @property
    def running_text(self) -> str:
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
        ended, where none was materialized, and where no run has ended for long.
        """
        if not self.per_second or not self.counts.succeeded or self.silent_since:
            return ""
        if self.per_second >= 1:
            return f"{self.per_second:.1f} partitions/s"
        return f"{60 * self.per_second:.1f} partitions/min"

    @property
    def left(self) -> timedelta | None:
        """The time left at this rate; None where unknown, and where no run has ended for long."""
        if not self.per_second or self.silent_since:
            return None
        if self.backfill.ended or self.backfill.group.paused:
            return None
        return timedelta(seconds=self.counts.left / self.per_second)

    @property
    def bar(self) -> list[BarSegment]:
        """The sections of the bar: succeeded, failed, canceled, skipped, and running partitions."""
        kinds = (
            ("good", "succeeded"),
            ("bad", "failed"),
            ("neutral", "canceled"),
            ("faint", "skipped"),
            ("info", "running"),
        )
        sections, x = [], 0.0
        numbers = dict(self.counts.by_state()) | dict(self.unfinished)
        for css, state in kinds:
            if state in numbers:
                width = 100 * numbers[state] / max(self.counts.total, 1)
                sections.append(BarSegment(css, round(x, 2), round(width, 2)))
                x += width
        return sections


def progress_of(
    backfill: Backfill, pace: Pace | None = None, pause: Pause | None = None
) -> Progress:
    """Return the progress of a backfill whose assets are loaded."""
    return Progress(backfill, counts_of(backfill.assets.all()), pace or _UNKNOWN, pause=pause)


def progress_by_asset(backfill: Backfill, asset_rows: Sequence[BackfillAsset]) -> list[Progress]:
    """Return the progress of each of the assets of a backfill: one query."""
    running = running_by_asset(backfill)
    return [
        Progress(
            backfill,
            counts_of([asset_row]),
            Pace(running_partitions=int(running.get(asset_row.asset_id, 0))),
            asset_row,
        )
        for asset_row in asset_rows
    ]


def progress_with_pace(backfills: Sequence[Backfill]) -> list[Progress]:
    """Return the progress of several backfills, with their pace and pause: one query, and another
    one if any is paused.
    """
    paces = paces_of(backfills, database_now()) if backfills else {}
    pauses = pauses_of(backfills)
    return [
        progress_of(backfill, paces.get(backfill.pk), pauses.get(backfill.pk))
        for backfill in backfills
    ]

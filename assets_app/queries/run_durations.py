"""The durations of the latest runs of an asset, as a drawing."""

from dataclasses import dataclass
from datetime import timedelta

from assets_app.models import Asset, Run, RunState
from assets_app.queries.run_bars import HEIGHT

_MOST_RUNS = 60
_TONES = {RunState.SUCCEEDED: "good", RunState.FAILED: "bad"}


@dataclass(frozen=True, slots=True)
class DurationBar:
    """A run as a bar: the height tells the duration, the class the state."""

    run: Run
    duration: timedelta
    height: float

    @property
    def css(self) -> str:
        """The class of the bar."""
        return _TONES.get(RunState(self.run.state), "neutral")

    @property
    def y(self) -> float:
        """The top of the bar."""
        return round(HEIGHT - self.height, 2)


@dataclass(frozen=True, slots=True)
class DurationChart:
    """The bars, oldest run first, and the longest and the middle duration."""

    bars: list[DurationBar]
    longest: timedelta
    median: timedelta


def duration_chart(asset: Asset) -> DurationChart | None:
    """Return the durations of the latest ended runs: one statement; None without such runs."""
    rows = Run.objects.materializing(asset).filter(started_at__isnull=False, ended_at__isnull=False)
    columns = rows.only("id", "state", "selection", "started_at", "ended_at").order_by("-id")
    timed = [
        (run, run.ended_at - run.started_at)
        for run in columns[:_MOST_RUNS]
        if run.ended_at and run.started_at
    ]
    if not timed:
        return None
    durations = sorted(duration for _, duration in timed)
    longest = durations[-1]
    bars = [
        DurationBar(run, duration, round(max(HEIGHT * (duration / longest), 0.5), 2))
        for run, duration in reversed(timed)
        if longest
    ]
    return DurationChart(bars, longest, durations[len(durations) // 2])

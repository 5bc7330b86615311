"""How far a backfill has come: counts, rate, time left, and the pieces of its bar."""

from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from backfills_app.models import Backfill, BackfillAsset

_FEWEST_FOR_A_RATE = 3


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of the bar, of 100."""

    css: str
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Progress:
    """A backfill and the sums of its assets' counts."""

    backfill: Backfill
    total: int
    done: int
    counts: dict[str, int]
    per_second: float | None

    @property
    def version(self) -> str:
        """Changes with everything that is shown of it."""
        numbers = ".".join(str(number) for number in self.counts.values())
        return f"{self.backfill.pk}.{self.backfill.state}.{numbers}"

    @property
    def percent(self) -> int:
        """Rounded down, so that 100 means all."""
        return 100 * self.done // self.total if self.total else 0

    @property
    def rate(self) -> str:
        """Partitions per second or minute, with the unit; empty where too few were made."""
        if not self.per_second:
            return ""
        if self.per_second >= 1:
            return f"{self.per_second:.1f} a second"
        return f"{60 * self.per_second:.1f} a minute"

    @property
    def left(self) -> timedelta | None:
        """Time left at this rate."""
        if not self.per_second or self.backfill.ended:
            return None
        return timedelta(seconds=(self.total - self.done) / self.per_second)

    @property
    def settled(self) -> list[tuple[str, int]]:
        """States with their numbers, none that is empty."""
        return [(state, number) for state, number in self.counts.items() if number]

    @property
    def bar(self) -> list[Piece]:
        """Succeeded, failed, canceled and skipped, and what runs now."""
        kinds = (
            ("s", "succeeded"),
            ("f", "failed"),
            ("c", "canceled"),
            ("k", "skipped"),
            ("a", "active"),
        )
        pieces, x = [], 0.0
        for css, state in kinds:
            if self.counts[state]:
                width = 100 * self.counts[state] / max(self.total, 1)
                pieces.append(Piece(css, round(x, 2), round(width, 2)))
                x += width
        return pieces


def progress_of(backfill: Backfill) -> Progress:
    """The progress of a backfill whose assets are at hand."""
    parts = list(backfill.assets.all())
    counts = {
        state: sum(getattr(part, state) for part in parts)
        for state in ("succeeded", "failed", "canceled", "skipped", "active", "waiting")
    }
    total = sum(part.total for part in parts)
    # Those that are no rows yet wait as well.
    counts["waiting"] = max(total - sum(counts.values()) + counts["waiting"], 0)
    done = sum(part.done for part in parts)
    return Progress(backfill, total, done, counts, _per_second(backfill, counts))


def _per_second(backfill: Backfill, counts: dict[str, int]) -> float | None:
    made = counts["succeeded"] + counts["failed"]
    if backfill.run_start_date is None or made < _FEWEST_FOR_A_RATE:
        return None
    spent = (backfill.run_end_date or timezone.now()) - backfill.run_start_date
    return made / max(spent.total_seconds(), 0.1)


def first_part(backfill: Backfill) -> BackfillAsset | None:
    """The asset that was asked for."""
    return next(iter(backfill.assets.all()), None)

"""What somebody can do with a backfill as it stands: what pages offer, and services check again."""

from dataclasses import dataclass

from django.http import HttpRequest

from accounts_app.policy import Action, Reach, reach
from backfills_app.models import BackfillState
from backfills_app.views.progress import Progress


@dataclass(frozen=True, slots=True)
class Allowed:
    """What is offered of one backfill."""

    pause: bool = False
    resume: bool = False
    cancel: bool = False
    retry: bool = False
    change: bool = False
    clone: bool = False
    delete: bool = False

    @property
    def anything(self) -> bool:
        """Whether there is a reason to select it."""
        return self.pause or self.resume or self.cancel or self.retry or self.delete


@dataclass(frozen=True, slots=True)
class Reaches:
    """On which assets a person may start and steer backfills, and on which stop them."""

    backfill: Reach
    cancel: Reach

    def over(self, progress: Progress, *, skipped_upstream: bool = False) -> Allowed:
        """What this person can do with a backfill whose assets are at hand: no statement."""
        backfill = progress.backfill
        assets = [part.asset for part in backfill.assets.all()] or [backfill.asset]
        steers = bool(self.backfill) and all(map(self.backfill.covers, assets))
        stops = bool(self.cancel) and all(map(self.cancel.covers, assets))
        if backfill.deleted:
            return Allowed(clone=steers)
        goes_on = not backfill.ended and backfill.state != BackfillState.CANCELING
        undone = progress.counts["failed"] + progress.counts["canceled"] > 0 or skipped_upstream
        retries = undone and backfill.state != BackfillState.CANCELING and not backfill.error
        return Allowed(
            pause=steers and goes_on and not backfill.group.paused,
            resume=steers and goes_on and backfill.group.paused,
            cancel=stops and goes_on,
            retry=steers and retries,
            change=steers and goes_on,
            clone=steers,
            delete=steers and backfill.ended,
        )


def reaches_of(request: HttpRequest) -> Reaches:
    """What the person who asks may do: two statements at most for each."""
    return Reaches(reach(request.user, Action.BACKFILL), reach(request.user, Action.CANCEL))

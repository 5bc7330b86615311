"""What somebody can do with a backfill as it stands: what pages offer, and services check again."""

from dataclasses import dataclass

from django.http import HttpRequest

from accounts_app.policy import Action, Reach, reach
from backfills_app.models import Backfill, BackfillState
from backfills_app.services.outlets import assets_made
from backfills_app.views.progress import Progress


@dataclass(frozen=True, slots=True)
class Allowed:
    """What is offered of one backfill."""

    pause: bool = False
    resume: bool = False
    cancel: bool = False
    # What failed, or was skipped for want of something upstream; and what was canceled.
    retry: bool = False
    retry_canceled: bool = False
    # Whether the canceled partitions are the first thing that a person would want to make now.
    is_canceled_first: bool = False
    change: bool = False
    clone: bool = False
    delete: bool = False

    @property
    def anything(self) -> bool:
        """Whether there is a reason to select it."""
        retries = self.retry or self.retry_canceled
        return self.pause or self.resume or self.cancel or retries or self.delete


@dataclass(frozen=True, slots=True)
class Reaches:
    """On which assets a person may start and steer backfills, and on which stop them."""

    backfill: Reach
    cancel: Reach

    def over(self, progress: Progress, *, skipped_upstream: bool = False) -> Allowed:
        """What this person can do with a backfill: no statement, but for those who may do it to
        some assets only.
        """
        backfill = progress.backfill
        steers, stops = _covers(self.backfill, backfill), _covers(self.cancel, backfill)
        if backfill.deleted:
            return Allowed(clone=steers)
        goes_on = not backfill.ended and backfill.state != BackfillState.CANCELING
        failed = progress.counts.failed > 0 or skipped_upstream
        canceled = progress.counts.canceled > 0
        retries = steers and backfill.state != BackfillState.CANCELING and not backfill.error
        is_canceled = backfill.state == BackfillState.CANCELED
        return Allowed(
            pause=steers and goes_on and not backfill.group.paused,
            resume=steers and goes_on and backfill.group.paused,
            cancel=stops and goes_on,
            retry=retries and failed,
            retry_canceled=retries and canceled,
            is_canceled_first=retries and canceled and (is_canceled or not failed),
            change=steers and goes_on,
            clone=steers,
            delete=steers and backfill.ended,
        )


def _covers(within: Reach, backfill: Backfill) -> bool:
    if within.everything or not within:
        return within.everything
    return all(map(within.covers, assets_made(backfill)))


def reaches_of(request: HttpRequest) -> Reaches:
    """What the person who asks may do: two statements at most for each."""
    return Reaches(reach(request.user, Action.BACKFILL), reach(request.user, Action.CANCEL))

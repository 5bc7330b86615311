"""The actions that a person may take on a backfill in its present state: pages offer these actions,
and services check again.
"""

from dataclasses import dataclass

from django.http import HttpRequest

from accounts_app.policy import Action, Reach, reach
from backfills_app.models import Backfill, BackfillState
from backfills_app.services.advance.carrying import is_given_up
from backfills_app.services.partitions.outlets import assets_made
from backfills_app.views.progress import Progress


@dataclass(frozen=True, slots=True)
class Allowed:
    """The actions that are offered for one backfill."""

    pause: bool = False
    resume: bool = False
    cancel: bool = False
    # Retry of failed partitions and of partitions skipped because of upstream; retry of canceled
    # ones.
    retry: bool = False
    retry_canceled: bool = False
    # Whether a person would want to retry the canceled partitions first.
    is_canceled_first: bool = False
    change: bool = False
    clone: bool = False
    delete: bool = False

    @property
    def anything(self) -> bool:
        """Whether there is a reason to select the backfill."""
        retries = self.retry or self.retry_canceled
        return self.pause or self.resume or self.cancel or retries or self.delete


@dataclass(frozen=True, slots=True)
class Reaches:
    """The assets on which a person may start and control backfills, and the assets on which the
    person may cancel backfills.
    """

    backfill: Reach
    cancel: Reach

    def over(self, progress: Progress, *, has_retried_skips: bool = False) -> Allowed:
        """Return the actions that this person may take on a backfill: no query, except for persons
        who may act on some assets only.
        """
        backfill = progress.backfill
        may_control = covers_backfill(self.backfill, backfill)
        may_cancel = covers_backfill(self.cancel, backfill)
        if backfill.deleted:
            return Allowed(clone=may_control)
        is_canceling = backfill.state == BackfillState.CANCELING
        is_unfinished = not backfill.ended and not is_canceling
        failed = progress.counts.failed > 0 or has_retried_skips
        canceled = progress.counts.canceled > 0
        may_retry = may_control and not is_canceling and not is_given_up(backfill)
        is_canceled = backfill.state == BackfillState.CANCELED
        return Allowed(
            pause=may_control and is_unfinished and not backfill.group.paused,
            resume=may_control and is_unfinished and backfill.group.paused,
            cancel=may_cancel and is_unfinished,
            retry=may_retry and failed,
            retry_canceled=may_retry and canceled,
            is_canceled_first=may_retry and canceled and (is_canceled or not failed),
            change=may_control and is_unfinished,
            clone=may_control,
            delete=may_control and backfill.ended,
        )


def covers_backfill(within: Reach, backfill: Backfill) -> bool:
    """Return whether all assets that a backfill writes are within reach: no query, except for
    persons who may act on some assets only.
    """
    if within.everything or not within:
        return within.everything
    return all(map(within.covers, assets_made(backfill)))


def reaches_of(request: HttpRequest) -> Reaches:
    """Return the permissions of the request's person: at most two queries for each action."""
    return Reaches(reach(request.user, Action.BACKFILL), reach(request.user, Action.CANCEL))

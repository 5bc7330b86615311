"""Pauses before the next attempt at a run, and the number of retries."""

from datetime import timedelta

from django.conf import settings

from assets_app.models import FailureKind, Run
from slicewise.declaring import LONGEST_RETRY_DELAY


def retry_delay(run: Run, kind: FailureKind, *, is_loss: bool = False) -> timedelta | None:
    """Return the pause before the next attempt, doubled each time; None if no retry follows.

    Failures of the platform do not count against the retries of the asset: such failures are
    retried until the pauses add up to PLATFORM_RETRY_HOURS. Losses of a process or a worker, each
    of which the run itself may have caused, are retried until loss number LOST_ATTEMPTS_LIMIT.
    """
    if kind is FailureKind.DATA:
        return None
    if kind is FailureKind.PLATFORM:
        return _platform_delay(run, is_loss=is_loss)
    spec = run.producer_version.spec
    if run.code_failures >= spec.retries:
        return None
    # A version that was stored before declarations had bounds may ask for any number.
    seconds = min(spec.retry_delay, LONGEST_RETRY_DELAY.total_seconds())
    return _doubled(timedelta(seconds=seconds), run.code_failures, LONGEST_RETRY_DELAY)


def is_lost_too_often(run: Run) -> bool:
    """Return whether the present loss of a process or worker is the last that the run may have."""
    allowed: int = settings.LOST_ATTEMPTS_LIMIT
    return run.lost_attempts + 1 >= allowed


def platform_pause(failures: int) -> timedelta:
    """Return the pause after a failure of the platform, given the number of failures before."""
    first = timedelta(seconds=settings.PLATFORM_RETRY_PAUSE_SECONDS)
    longest = timedelta(seconds=settings.PLATFORM_RETRY_LONGEST_PAUSE_SECONDS)
    return _doubled(first, failures, longest)


def _platform_delay(run: Run, *, is_loss: bool) -> timedelta | None:
    if is_loss:
        return None if is_lost_too_often(run) else platform_pause(run.lost_attempts)
    waited = sum(map(platform_pause, range(run.platform_failures)), timedelta())
    if waited >= timedelta(hours=settings.PLATFORM_RETRY_HOURS):
        return None
    return platform_pause(run.platform_failures)


def _doubled(first: timedelta, times: int, longest: timedelta) -> timedelta:
    """Return ``first``, doubled so many ``times``, but no longer than ``longest``."""
    delay: timedelta = min(first, longest) * 2 ** min(times, 30)
    return min(delay, longest)

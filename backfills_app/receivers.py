"""The receivers of signals about runs.

Services are imported when a signal arrives: a command that only reads starts without the services.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from django.dispatch import Signal, receiver

from accounts_app.models import User
from assets_app.models import RunAttempt, Trigger
from assets_app.signals import (
    attempt_opened,
    retry_considered,
    retry_requested,
    runs_ended,
    runs_retried,
)
from backfills_app.models import Backfill


@receiver(runs_ended)
def hear_of_ended_runs(run_ids: Sequence[int], **_: Any) -> None:
    from backfills_app.services.bookkeeping.following import follow

    follow(run_ids)


@receiver([retry_requested, retry_considered])
def hear_of_asked_retries(signal: Signal, run_ids: Sequence[int], **_: Any) -> dict[int, str]:
    from backfills_app.services.control import retrying_failed

    if signal is retry_requested:
        return retrying_failed.object_to_retry(run_ids)
    return retrying_failed.objections_to_retry(run_ids)


@receiver(runs_retried)
def hear_of_retried_runs(run_ids: Sequence[int], user: User, **_: Any) -> None:
    from backfills_app.services.control.retrying_failed import follow_retried

    follow_retried(run_ids, user)


@receiver(attempt_opened)
def name_backfill(attempt: RunAttempt, **_: Any) -> dict[str, int]:
    """Return the backfill of the attempt's run, for log lines."""
    run = attempt.run
    return {"backfill": _backfill_of(run.group_id)} if run.trigger == Trigger.BACKFILL else {}


@lru_cache(maxsize=1_000)
def _backfill_of(group_id: int) -> int:
    """Return the backfill of a group, which never changes."""
    return Backfill.objects.values_list("pk", flat=True).get(group=group_id)

"""The receivers of signals about runs.

Services are imported when a signal arrives: a command that only reads starts without the services.
"""

from collections.abc import Sequence
from typing import Any

from django.dispatch import receiver

from assets_app.signals import retry_requested, runs_ended, runs_retried


@receiver(runs_ended)
def hear_of_ended_runs(run_ids: Sequence[int], **_: Any) -> None:
    from backfills_app.services.bookkeeping.following import follow

    follow(run_ids)


@receiver(retry_requested)
def hear_of_asked_retries(run_ids: Sequence[int], **_: Any) -> dict[int, str]:
    from backfills_app.services.control.retrying_failed import object_to_retry

    return object_to_retry(run_ids)


@receiver(runs_retried)
def hear_of_retried_runs(run_ids: Sequence[int], **_: Any) -> None:
    from backfills_app.services.control.retrying_failed import follow_retried

    follow_retried(run_ids)

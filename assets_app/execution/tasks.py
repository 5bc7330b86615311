"""Tasks of the workers: each takes ids and calls one service."""

from celery import shared_task

from assets_app.execution import tick_steps
from assets_app.execution.gateway import calling, publishing, recovery, supervision


@shared_task(name="assets_app.execution.tasks.execute")
def execute(run_id: int) -> None:
    """Execute one dispatched run."""
    supervision.execute(run_id)


@shared_task(name="assets_app.execution.tasks.finish_publishing")
def finish_publishing(attempt_id: int, token: str) -> None:
    """Finish the publication of a lost worker."""
    publishing.finish_publishing(attempt_id, token)


@shared_task(name="assets_app.execution.tasks.stop_lost_attempt")
def stop_lost_attempt(attempt_id: int, token: str) -> None:
    """Stop the canceled run of a lost worker."""
    recovery.stop_lost_attempt(attempt_id, token)


@shared_task(name="assets_app.execution.tasks.clear_lost_attempt")
def clear_lost_attempt(attempt_id: int) -> None:
    """Clear away the Spark work and the data of an ended attempt."""
    recovery.clear_lost_attempt(attempt_id)


@shared_task(name="assets_app.execution.tasks.call_hook")
def call_hook(hook_id: int) -> None:
    """Call the function that an asset declares for the time after a run."""
    calling.call_hook(hook_id)


@shared_task(name="assets_app.execution.tasks.check_queues")
def check_queues() -> None:
    """Compare the heads of the queues with the queued runs; the next dispatch repairs the heads."""
    tick_steps.request_head_check()

"""Tasks of the workers: each takes ids and calls one service."""

from celery import shared_task

from assets_app.execution import calling, publishing, recovery, supervision


@shared_task(name="assets_app.execution.tasks.execute")
def execute(run_id: int) -> None:
    """Execute one dispatched run."""
    supervision.execute(run_id)


@shared_task(name="assets_app.execution.tasks.finish_publishing")
def finish_publishing(attempt_id: int, token: str) -> None:
    """Finish what a lost worker was publishing."""
    publishing.finish_publishing(attempt_id, token)


@shared_task(name="assets_app.execution.tasks.stop_lost_attempt")
def stop_lost_attempt(attempt_id: int, token: str) -> None:
    """Stop what a lost worker was canceling."""
    recovery.stop_lost_attempt(attempt_id, token)


@shared_task(name="assets_app.execution.tasks.clear_lost_attempt")
def clear_lost_attempt(attempt_id: int) -> None:
    """Clear away what an ended attempt has left behind."""
    recovery.clear_lost_attempt(attempt_id)


@shared_task(name="assets_app.execution.tasks.call_hook")
def call_hook(hook_id: int) -> None:
    """Call what an asset declares to be called after a run."""
    calling.call_hook(hook_id)

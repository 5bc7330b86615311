"""Attempts at runs: begun, staged and published without a worker's process."""

from typing import Any

from accounts_app.models import User
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.attempts import Attempt
from assets_app.execution.queue.dispatch import dispatch
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, Gateway, Run
from tests.factories import outlet_of


def begun(
    flights: Asset, alice: User, gateway: Gateway, selection: str = "2013-01-01", **more: Any
) -> Attempt:
    """Begin a run of the selection on the gateway, and return the attempt."""
    group = materialize(MaterializeRequest(asset=flights, selection=selection, **more), user=alice)
    return begin_next(group.runs.get(), gateway)


def begin_next(run: Run, gateway: Gateway) -> Attempt:
    """Dispatch, begin the next attempt at the run on the gateway, and return the attempt."""
    dispatch()
    attempt = attempts.begin(run.pk, gateway)
    assert attempt is not None
    return attempt


def staged(attempt: Attempt) -> list[dict[str, Any]]:
    return [
        {"key": key, "path": f"partition={key}", "rows": 5, "bytes": 50} for key in attempt.keys
    ]


def publish(attempt: Attempt) -> None:
    assert attempts.intend_to_publish(attempt.row, [outlet_of(attempt, staged(attempt))])
    assert ending.succeed(attempt.row)

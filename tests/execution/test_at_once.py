"""What happens at the same moment, on connections of their own."""

import threading
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from django.db import connections

from assets_app.execution import attempts, control
from assets_app.execution.attempts import Failure
from assets_app.execution.control import cancel_group
from assets_app.models import FailureKind, Run, RunState
from tests.cast import DAILY_2013, asset, person
from tests.execution.conftest import make_gateway
from tests.execution.test_attempts import begun

pytestmark = pytest.mark.django_db(transaction=True)


def elsewhere(work: Callable[[], Any]) -> threading.Thread:
    """The work, begun on a connection of its own."""

    def run() -> None:
        try:
            work()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_run_that_goes_back_to_the_queue_meanwhile_is_canceled_all_the_same() -> None:
    alice = person("alice", is_superuser=True)
    attempt = begun(asset("raw_flights", DAILY_2013), alice, make_gateway("scheduled"))
    real, others = control.move_all, []

    def fail() -> None:
        attempts.fail(attempt.row, Failure(error="gone", kind=FailureKind.PLATFORM))

    def move_all(run_ids: list[int], old: RunState, new: RunState, **fields: Any) -> list[int]:
        moved = real(run_ids, old, new, **fields)
        if old == RunState.QUEUED:
            others.append(elsewhere(fail))
            others[0].join(1)
        return moved

    with patch.object(control, "move_all", move_all):
        assert cancel_group(attempt.run.group, user=alice) == 1
    others[0].join()
    assert Run.objects.get().state == RunState.CANCELING

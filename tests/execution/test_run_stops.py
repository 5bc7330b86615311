"""Requests to stop a runner, repeated until the time is over."""

from types import SimpleNamespace
from typing import Any

import pytest

from assets_app.execution.gateway import run_stops
from assets_app.execution.gateway.run_stops import CANCELED, RunStop


def test_a_runner_is_asked_again_and_killed_when_its_time_is_over(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.TEARDOWN_SECONDS = 60.0
    now, calls = [1_000.0], []
    monkeypatch.setattr(run_stops, "time", SimpleNamespace(monotonic=lambda: now[0]))
    process: Any = SimpleNamespace(
        stop=lambda: calls.append("stop"), kill=lambda: calls.append("kill")
    )
    version: Any = SimpleNamespace(spec=SimpleNamespace(teardown="close"))
    stop = RunStop(process, version)
    stop.enforce()
    assert not calls
    stop.end(CANCELED)
    asked = []
    for second in range(62):
        now[0] = 1_000.5 + second
        before = len(calls)
        stop.end(CANCELED)
        stop.enforce()
        asked += [(second, call) for call in calls[before:]]
    assert asked[:3] == [(1, "stop"), (2, "stop"), (4, "stop")]
    assert {call for _, call in asked[3:]} == {"kill"}
    assert asked[3][0] == 60
    assert stop.is_late

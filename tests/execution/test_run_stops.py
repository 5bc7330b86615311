"""Requests to stop a runner, repeated until the time is over."""

from types import SimpleNamespace
from typing import Any

import pytest

from assets_app.execution.gateway import run_stops
from assets_app.execution.gateway.run_stops import CANCELED, RunStop


class AskedProcess:
    """A process that counts requests and kills, with a clock of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.calls = 1_000.0, list[str]()
        monkeypatch.setattr(run_stops, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.stop = lambda: self.calls.append("stop")
        self.kill = lambda: self.calls.append("kill")

    def run_stop(self) -> RunStop:
        """Return the end of this process, whose run has a tear-down."""
        process: Any = self
        version: Any = SimpleNamespace(spec=SimpleNamespace(teardown="close", timeout=None))
        return RunStop(process, version)


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch, settings: Any) -> AskedProcess:
    settings.TEARDOWN_SECONDS = 60.0
    return AskedProcess(monkeypatch)


def test_a_runner_is_asked_again_and_killed_when_its_time_is_over(process: AskedProcess) -> None:
    stop = process.run_stop()
    stop.enforce()
    assert not process.calls
    stop.end(CANCELED)
    asked = []
    for second in range(62):
        process.now = 1_000.5 + second
        before = len(process.calls)
        stop.end(CANCELED)
        stop.enforce()
        asked += [(second, call) for call in process.calls[before:]]
    assert asked[:3] == [(1, "stop"), (2, "stop"), (4, "stop")]
    assert {call for _, call in asked[3:]} == {"kill"}
    assert asked[3][0] == 60
    assert stop.is_late


def test_a_runner_that_has_heard_is_asked_no_more(process: AskedProcess) -> None:
    stop = process.run_stop()
    stop.end(CANCELED)
    process.now += 1.5
    stop.enforce()
    stop.note_end()
    process.now += 50.0
    stop.end(CANCELED)
    stop.enforce()
    assert process.calls == ["stop", "stop"]
    process.now += 10.0
    stop.enforce()
    assert process.calls[2:] == ["kill"]

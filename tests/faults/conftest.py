"""Fixtures of the tests of faults: the whole stack, means to break the stack, and the table at the
end.
"""

import os
from collections.abc import Callable, Iterator

import pytest

from slicewise_server.stack.stack import Stack
from tests.e2e.conftest import api, database, lake
from tests.faults.stack_processes import Crew

__all__ = ["api", "database", "lake"]

# `make faults` asks for three.
ROUNDS = int(os.environ.get("FAULT_ROUNDS", "1"))
_RECOVERY = "recovery"

Recovered = Callable[[str, float], None]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeat each test as many times as FAULT_ROUNDS asks for."""
    if ROUNDS > 1:
        numbers = range(1, ROUNDS + 1)
        metafunc.parametrize("fault_round", numbers, ids=[f"round {n}" for n in numbers])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests for `make faults` alone: such a test takes long, and another test is like
    it.
    """
    if ROUNDS > 1:
        return
    left_out = [item for item in items if item.get_closest_marker("rounds")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(autouse=True)
def fault_round() -> int:
    """Return the number of this round."""
    return 1


@pytest.fixture
def crew(stack: Stack) -> Iterator[Crew]:
    """Return the stack's processes, whole before and after the test."""
    open_crew = Crew(stack)
    open_crew.ready()
    yield open_crew
    try:
        open_crew.restore()
    finally:
        open_crew.close()


@pytest.fixture
def recovered(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Recovered:
    """Return a function that records fault and seconds of recovery: `recovered("web", 2.5)`."""
    row = request.node.get_closest_marker("fault").args[0]

    def record(fault: str, seconds: float) -> None:
        record_property(_RECOVERY, (row, fault, seconds))

    return record


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table: each fault, and the seconds of each recovery."""
    times_by_fault: dict[tuple[int, str], list[float]] = {}
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, value in report.user_properties if report.when == "call" else ():
            if name == _RECOVERY:
                row, fault, seconds = value
                times_by_fault.setdefault((row, fault), []).append(seconds)
    if not times_by_fault:
        return
    terminalreporter.section("recovery")
    width = max(len(fault) for _, fault in times_by_fault)
    for (row, fault), times in sorted(times_by_fault.items()):
        shown = "  ".join(f"{seconds:6.1f} s" for seconds in times)
        terminalreporter.write_line(f"{row:3}  {fault:{width}}  {shown}")

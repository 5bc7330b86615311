"""The whole stack from outside: started, used, killed, ended."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slicewise_server.stack.commands import COMMANDS
from slicewise_server.stack.folder import PROJECT
from slicewise_server.stack.process import scrubbed
from slicewise_server.stack.stack import Stack
from slicewise_server.stack.supervision import wait_for
from tests.health import is_healthy
from tests.processes import START_SECONDS, are_gone, descendants, is_alive, read_until

pytestmark = pytest.mark.slow
SLICEWISE = [sys.executable, "-m", "slicewise_server.stack.cli"]


def test_every_process_runs_and_the_pages_answer(stack: Stack) -> None:
    for name in (*COMMANDS, "postgresql", "redis", "spark"):
        assert is_alive(stack.pid_of(name)), name
    with urllib.request.urlopen(f"{stack.web_url}/api/v1/health/", timeout=60) as answer:
        assert answer.status == 200


def test_a_killed_worker_comes_back(stack: Stack) -> None:
    killed = stack.pid_of("worker-backfill")
    below = descendants(killed)
    os.kill(killed, signal.SIGKILL)
    assert are_gone(below)
    wait_for(lambda: stack.pid_of("worker-backfill") not in (0, killed), "worker", seconds=120)


def test_a_killed_web_server_leaves_no_child_and_comes_back(stack: Stack) -> None:
    killed = stack.pid_of("web")
    below = descendants(killed)
    assert below
    os.kill(killed, signal.SIGKILL)
    assert are_gone(below)
    wait_for(lambda: is_healthy(stack.web_url, seconds=60), "web", seconds=120)


def test_spark_finds_no_secret_of_ours(stack: Stack) -> None:
    environment = Path(f"/proc/{stack.pid_of('spark')}/environ").read_bytes().decode()
    for name in ("SECRET_KEY", "DATABASE_URL", "REDIS_URL"):
        assert name not in environment
        assert stack.environment()[name] not in environment


def test_a_command_beside_the_running_stack_finds_its_settings(stack: Stack) -> None:
    answer = subprocess.run(
        [*SLICEWISE, "assets", "list"],
        env={**scrubbed(os.environ), "SLICEWISE_DATA": str(stack.data)},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert "raw_flights" in answer.stdout


def test_up_on_a_running_data_folder_is_refused(stack: Stack) -> None:
    answer = subprocess.run(
        [*SLICEWISE, "up"],
        env={**scrubbed(os.environ), "SLICEWISE_DATA": str(stack.data)},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1
    assert "already running" in answer.stderr
    assert stack.web_url in answer.stderr


@pytest.fixture
def up(folder: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Return a function that starts `slicewise up` on one folder, as often as the test calls it."""
    started: list[subprocess.Popen[str]] = []

    def start(**more: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*SLICEWISE, "up"],
            env={**scrubbed(os.environ), "SLICEWISE_DATA": str(folder), **more},
            cwd=PROJECT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_killed_up_leaves_no_process_and_the_next_one_works_until_ctrl_c(
    up: Callable[..., subprocess.Popen[str]], spark_remote: str
) -> None:
    first = up()
    text = read_until(first, "Ctrl-C ends it")
    assert re.search(r"sign in as +admin\n +password +\S{20}", text)
    processes = descendants(first.pid)
    assert len(processes) > 12
    first.kill()

    # The second one waits for the end of what the first one started.
    second = up(SPARK_REMOTE=spark_remote)
    text = read_until(second, "Ctrl-C ends it")
    assert are_gone(processes)
    address = re.search(r"Slicewise is at (\S+)", text)
    assert address is not None
    assert is_healthy(address[1], seconds=60)
    assert re.search(r"sign in as +admin\n +password +in \S+/credentials.json\n", text)

    processes = descendants(second.pid)
    assert not any(b"SparkConnectServer" in _command(pid) for pid in processes)
    second.send_signal(signal.SIGINT)
    assert second.wait(timeout=START_SECONDS) == 0
    assert are_gone(processes)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has just ended
        return b""

"""With LOG_JSON each line of a process is JSON, from the first to the last."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.db import connection

from slicewise_server.stack import ports
from slicewise_server.stack.commands import COMMANDS
from slicewise_server.stack.services import Services
from tests.processes import START_SECONDS

PROJECT = Path(__file__).resolve().parents[2]
# A part of the line by which each process says that it works.
READY = {"web": "Started worker-1", "beat": "refused", "worker-control": "ready."}
# Beat says nothing while all is well: here its broker is away.
NEEDED = {"beat": {"REDIS_URL": "redis://127.0.0.1:9/0"}}
LEVELS = {"debug", "info", "warning", "error", "critical"}


class Output:
    """The lines of a process, standard output and errors together, as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.lines: list[str] = []
        self._process = process
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip("\n"))

    def wait_for(self, text: str) -> None:
        """Wait for a line with the text."""
        deadline = time.monotonic() + START_SECONDS
        while not any(text in line for line in self.lines):
            assert self._process.poll() is None, self.lines
            assert time.monotonic() < deadline, self.lines
            time.sleep(0.1)

    def end(self) -> None:
        """End the process as a supervisor does, and wait for its last line."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(START_SECONDS)
        finally:
            self._process.kill()
            self._reader.join(60)


@contextmanager
def output_of(name: str, services: Services, **env: str) -> Iterator[Output]:
    """Start a process of the stack by its own command; the process ends with the block."""
    address = urlsplit(services.environment()["DATABASE_URL"])
    (port,) = ports.pick(1)
    variables = {
        "DATABASE_URL": urlunsplit(address._replace(path=f"/{connection.settings_dict['NAME']}")),
        "REDIS_URL": services.environment()["REDIS_URL"],
        "GRANIAN_HOST": "127.0.0.1",
        "GRANIAN_PORT": str(port),
        "PYTHONUNBUFFERED": "1",
        # A warning of Python, beside the warning to a worker of root.
        "PYTHONWARNINGS": "default",
    }
    output = Output(
        subprocess.Popen(
            [sys.executable, *COMMANDS[name][1:]],
            env={**os.environ, **variables, **env},
            cwd=PROJECT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    )
    try:
        yield output
    finally:
        output.end()


def parsed(line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        pytest.fail(f"no JSON: {line!r}")
    assert isinstance(record, dict)
    assert record.keys() >= {"event", "level", "logger", "timestamp"}, record
    assert record["level"] in LEVELS
    return record


@pytest.mark.parametrize("name", READY)
def test_each_line_from_start_to_end_is_json(
    name: str, transactional_db: None, services: Services
) -> None:
    with output_of(name, services, LOG_JSON="true", **NEEDED.get(name, {})) as output:
        output.wait_for(READY[name])
    assert [parsed(line) for line in output.lines if line]


@pytest.mark.parametrize("name", ["web", "worker-control"])
def test_people_get_lines_of_text(name: str, transactional_db: None, services: Services) -> None:
    with output_of(name, services, LOG_JSON="false") as output:
        output.wait_for(READY[name])
    assert not any(line.startswith("{") for line in output.lines)


def test_the_error_that_ends_a_process_is_json_too() -> None:
    code = (
        "import django; django.setup()\n"
        "import threading, warnings\n"
        "from slicewise_server.process_output import log_other_output\n"
        "log_other_output()\n"
        "warnings.warn('old', stacklevel=1)\n"
        "thread = threading.Thread(target=lambda: 1 / 0); thread.start(); thread.join()\n"
        "raise ValueError('no broker at redis://:hunter2@h/0')\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", code],
        env={
            **os.environ,
            "LOG_JSON": "true",
            "DJANGO_SETTINGS_MODULE": "slicewise_server.settings",
        },
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 1
    warning, thread_end, end = [parsed(line) for line in process.stderr.splitlines()]
    assert "old" in warning["event"]
    assert "ZeroDivisionError" in thread_end["exception"]
    assert "ValueError: no broker" in end["exception"]
    assert "hunter2" not in process.stderr

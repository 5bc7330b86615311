"""Output of a process that is no log line by itself, as JSON lines: warnings, the error that ends
the process, and words of Celery.
"""

import json
import logging
import os
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TextIO

from slicewise_server.logging import is_json

log = logging.getLogger(__name__)


def log_other_output() -> None:
    """With LOG_JSON write warnings of Python, and errors that end the process or a thread, to the
    log. People read them better as they are.
    """
    if not is_json(os.environ):
        return
    logging.captureWarnings(True)
    sys.excepthook = _log_end
    threading.excepthook = _log_end_of_thread
    # Loaded in a worker alone.
    if worker_program := sys.modules.get("celery.apps.worker"):
        worker_program.safe_say = say_as_json  # type: ignore[attr-defined]


def say_as_json(message: str, stream: TextIO | None = None) -> None:
    """Write a line without the machinery of logs, whose locks a signal handler must not ask for."""
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    line = {"event": message, "level": "info", "logger": "celery.worker", "timestamp": now}
    with suppress(OSError, ValueError):
        os.write((stream or sys.stderr).fileno(), f"{json.dumps(line)}\n".encode())


def _log_end(*error: Any) -> None:
    log.critical("process ended by an error", exc_info=error)


def _log_end_of_thread(end: threading.ExceptHookArgs) -> None:
    if end.exc_type is not SystemExit and end.exc_value is not None:
        error = (end.exc_type, end.exc_value, end.exc_traceback)
        log.critical("thread ended by an error", exc_info=error)

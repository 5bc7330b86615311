"""Lines of the log: event, facts and traceback."""

import json
import logging
from typing import Any

import pytest

from slicewise_server.logging import EventFormatter


def line(name: str, *, as_json: bool, extra: dict[str, Any], error: Exception | None = None) -> str:
    record = logging.getLogger(name).makeRecord(
        name, logging.WARNING, __file__, 1, "message not sent to %s", ("beat",),
        (type(error), error, error.__traceback__) if error else None, extra=extra,
    )  # fmt: skip
    return EventFormatter(as_json).format(record)


def failed() -> Exception:
    password = "hunter2"  # noqa: F841
    try:
        raise ValueError("no broker")
    except ValueError as error:
        return error


def test_machines_read_the_event_and_its_facts() -> None:
    record = json.loads(line("assets_app.execution.queue.messages", as_json=True, extra={"run": 7}))
    assert record.pop("timestamp").endswith("Z")
    assert record == {
        "event": "message not sent to beat",
        "level": "warning",
        "logger": "assets_app.execution.queue.messages",
        "run": 7,
    }


def test_people_read_them_in_a_line() -> None:
    text = line("slicewise_server.beat", as_json=False, extra={"task": "tick"})
    assert "message not sent to beat" in text
    assert text.rstrip().endswith("task=tick")


@pytest.mark.parametrize("as_json", [True, False])
def test_what_libraries_pass_along_is_left_out(as_json: bool) -> None:
    text = line("django.request", as_json=as_json, extra={"request": "GET /?token=1"})
    assert "token" not in text


@pytest.mark.parametrize("as_json", [True, False])
def test_a_traceback_shows_no_variables(as_json: bool) -> None:
    text = line("slicewise_server.beat", as_json=as_json, extra={}, error=failed())
    assert "ValueError: no broker" in text
    assert "hunter2" not in text.replace('password = "hunter2"', "")

"""Lines of the log: event, facts and traceback."""

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from slicewise_server.logging import EventFormatter
from slicewise_server.web.log_context import log_facts


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
def test_extra_fields_of_libraries_are_left_out(as_json: bool) -> None:
    text = line("django.request", as_json=as_json, extra={"request": "GET /?token=1"})
    assert "token" not in text


@pytest.mark.parametrize("as_json", [True, False])
def test_a_traceback_shows_no_variables(as_json: bool) -> None:
    text = line("slicewise_server.beat", as_json=as_json, extra={}, error=failed())
    assert "ValueError: no broker" in text
    assert "hunter2" not in text.replace('password = "hunter2"', "")


def test_lines_name_the_work_of_their_thread() -> None:
    with log_facts({"run": 7, "asset": "flights"}), log_facts({"attempt": 2}):
        inner = json.loads(line("celery.app", as_json=True, extra={}))
        own = json.loads(line("assets_app.x", as_json=True, extra={"run": 8}))
        with ThreadPoolExecutor() as pool:
            other = pool.submit(line, "celery.app", as_json=True, extra={}).result()
    assert (inner["run"], inner["asset"], inner["attempt"]) == (7, "flights", 2)
    assert own["run"] == 8
    assert "run" not in json.loads(other)
    assert "run" not in json.loads(line("celery.app", as_json=True, extra={}))


def test_people_read_the_work_too() -> None:
    with log_facts({"run": 7}):
        assert line("celery.app", as_json=False, extra={}).rstrip().endswith("run=7")

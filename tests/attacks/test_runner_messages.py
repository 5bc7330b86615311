"""User code writes messages of its own to its worker: its run fails at once, and no other run."""

import json
import logging
from pathlib import Path
from unittest.mock import Mock
from uuid import uuid4

import pytest
from django.utils import timezone

from accounts_app.models import User
from assets_app.execution.attempt.engines import engine_of
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, Run, RunAttempt
from slicewise.runner.messages import FAILURE_KINDS, refuse_malformed
from slicewise.runner.wire import WireError
from tests import factories
from tests.clients import browser_of
from tests.runtime.conftest import runs, warm_parent
from tests.runtime.runs import Runs

__all__ = ["runs", "warm_parent"]


def nested(levels: int) -> list[object]:
    """Return lists in lists."""
    value: list[object] = []
    for _ in range(levels):
        value = [value]
    return value


PIECE: dict[str, object] = {"key": "k", "path": "p", "rows": 1, "bytes": 1}
STAGED: dict[str, object] = {"type": "staged", "root": "", "staging": ""}
FAILED: dict[str, object] = {"type": "failed", "error": "e", "traceback": "", "partition": None}
SPARK: dict[str, object] = {"type": "spark", "application_id": "app-1", "ui": None}
FORGED: list[object] = [
    FAILED | {"kind": "bogus"},
    FAILED | {"kind": ["code"]},
    FAILED | {"kind": "code", "error": None},
    {"type": "failed", "kind": "code"},
    STAGED | {"partitions": [PIECE | {"rows": 10**30}]},
    STAGED | {"partitions": [PIECE | {"bytes": -1}]},
    STAGED | {"partitions": [PIECE | {"rows": 1.5}]},
    STAGED | {"partitions": [PIECE | {"rows": True}]},
    STAGED | {"partitions": [PIECE | {"path": None}]},
    STAGED | {"partitions": [{"key": "k"}]},
    STAGED | {"partitions": {"key": "k"}},
    STAGED | {"partitions": [], "asset": 7},
    {"type": "unmade", "partitions": [{"key": 1, "error": "e"}]},
    {"type": "unmade", "partitions": ["k"]},
    {"type": "discovered", "set": ["s"], "keys": []},
    {"type": "discovered", "set": "s", "keys": "k"},
    {"type": "validated", "when": [], "asset": "a", "results": []},
    {"type": "validated", "when": "outlet", "asset": {}, "results": []},
    {"type": "ask", "question": 7},
    {"type": "exited", "status": 0, "signal": None},
    {"type": "started", "pid": 1},
    {"type": "log", "text": "x"},
    {"type": {}},
    {"no": "type"},
    SPARK | {"ui": "javascript:alert(document.domain)"},
    SPARK | {"ui": "data:text/html,x"},
    SPARK | {"ui": 7},
    SPARK | {"application_id": "-kill"},
    SPARK | {"application_id": "app-1,spark-role=driver"},
    SPARK | {"application_id": "app-1 application_2_0002"},
    SPARK | {"application_id": "a" * 201},
    SPARK | {"application_id": "app-1\n"},
    {"type": "finished", "status": 0},
    SPARK | {"": 1},
    STAGED | {"partitions": [PIECE | {"error": "e"}]},
    FAILED | {"kind": "code", "partition": ["k"]},
    {"type": "discovered", "set": "s", "keys": [None]},
    {"type": "discovered", "set": "s", "keys": [["k"]]},
    {"type": "discovered", "set": "s", "keys": [{}]},
    {"type": "discovered", "set": "s", "keys": [{"tuple": [], "date": ""}]},
    {"type": "discovered", "set": "s", "keys": [{"tuple": nested(200)}]},
    {"type": "discovered", "set": nested(500), "keys": []},
    {"type": nested(500)},
    {"type": "ask", "question": "past_partitions", "after": nested(200)},
]
RIGHT: list[dict[str, object]] = [
    *(FAILED | {"kind": kind} for kind in FAILURE_KINDS),
    STAGED | {"partitions": [PIECE, PIECE | {"rows": None, "bytes": 2**63 - 1}], "asset": "a"},
    SPARK | {"ui": "https://spark:4040"},
    SPARK | {"application_id": None},
    SPARK | {"application_id": "application_1763820745_0001", "ui": "HTTP://host"},
    {"type": "discovered", "set": "s", "keys": ["k", 1, {"a": 1}]},
    {"type": "discovered", "set": "s", "keys": [1.5, True, {"tuple": ["a", {"tuple": [1]}]}]},
    {"type": "ask", "question": "past_partitions", "after": ["2013-01-01", "", 1]},
    {"type": "ask", "question": "recorded", "asset": "a", "keys": ["k"]},
    {"type": "validated", "when": "outlet", "asset": "a", "results": [1]},
    {"type": "finished"},
]


@pytest.mark.parametrize("forged", FORGED, ids=lambda forged: json.dumps(forged)[:60])
def test_a_message_of_another_form_is_refused(forged: dict[str, object]) -> None:
    with pytest.raises(WireError):
        refuse_malformed(forged)


@pytest.mark.parametrize("right", RIGHT, ids=lambda right: json.dumps(right)[:60])
def test_messages_of_runners_are_accepted(right: dict[str, object]) -> None:
    refuse_malformed(right)


@pytest.mark.parametrize(
    "forged",
    [
        FAILED | {"kind": "bogus"},
        STAGED | {"partitions": [PIECE | {"rows": 10**30}]},
        SPARK | {"ui": "javascript:alert(1)"},
    ],
    ids=["kind", "rows", "ui"],
)
def test_a_forger_s_run_ends_at_once_by_its_own_fault(
    runs: Runs, forged: dict[str, object]
) -> None:
    line = json.dumps(forged).encode() + b"\n"
    runs.define(f"""
        @asset()
        def forger():
            os.write(3, {line!r})
            time.sleep(60)
    """)
    outcome = runs.run("forger")
    assert outcome.types == ["started", "failed", "exited"]
    assert outcome.failure["kind"] == "code"
    assert "invalid message" in outcome.failure["error"]


DISCOVERED = b'{"type": "discovered", "set": "s", "keys": [%s]}\n'
NO_MESSAGES = {
    "NaN": DISCOVERED % b"NaN",
    "infinity": DISCOVERED % b"-Infinity",
    "a float that overflows": DISCOVERED % b"1e999",
    "a float that overflows downwards": DISCOVERED % b'{"tuple": [-1e999]}',
    "an integer of 10,000 digits": DISCOVERED % (b"9" * 10_000),
    "thousands of levels": DISCOVERED % (b"[" * 100_000 + b"]" * 100_000),
    "as many levels as can be read": DISCOVERED % (b"[" * 970 + b"]" * 970),
    "bytes that are no text": DISCOVERED % b'"\xff"',
    "another encoding": (DISCOVERED % b'"k"').decode().encode("utf-16-le") + b"\n",
}


@pytest.mark.parametrize("line", NO_MESSAGES.values(), ids=NO_MESSAGES.keys())
def test_values_that_json_does_not_have_end_their_own_run(runs: Runs, line: bytes) -> None:
    runs.define(f"""
        @asset()
        def forger():
            left = {line!r}
            while left:
                left = left[os.write(3, left):]
            time.sleep(60)
    """)
    outcome = runs.run("forger")
    assert outcome.types == ["started", "failed", "exited"]
    assert outcome.failure["kind"] == "code"
    assert "invalid message" in outcome.failure["error"]


@pytest.fixture
def attempt(raw_flights: Asset, settings: object) -> RunAttempt:
    """Create an attempt whose runner has reported Spark."""
    ada = factories.person("ada", is_superuser=True)
    materialize(MaterializeRequest(asset=raw_flights, selection="2013-01-01"), user=ada)
    return RunAttempt.objects.create(
        run=Run.objects.get(), number=1, token=uuid4(), started_at=timezone.now(), engine="submit",
        application_id="application_1_0001",
    )  # fmt: skip


@pytest.mark.parametrize("address", ["javascript:alert(1)", "JaVaScRiPt://x", "//evil.example"])
def test_an_address_on_record_that_is_no_web_page_is_no_link(
    attempt: RunAttempt, address: str
) -> None:
    RunAttempt.objects.update(application_ui=address)
    browser = browser_of(User.objects.get(username="ada"))
    page = browser.get(f"/runs/{attempt.run_id}/").content.decode()
    assert "application_1_0001" in page
    assert address not in page


@pytest.fixture
def yarn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: object) -> Path:
    """Install a command yarn that logs its calls, and that names every application after another
    run.
    """
    folder, call_log = tmp_path / "bin", tmp_path / "said"
    folder.mkdir()
    script = (
        f'#!/bin/sh\necho "$@" >> {call_log}\necho "\tApplication-Name : slicewise-run-999999-1"\n'
    )
    (folder / "yarn").write_text(script)
    (folder / "yarn").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    settings.SPARK_MASTER, settings.DATA_FOLDER = "yarn", tmp_path  # type: ignore[attr-defined]
    return call_log


def test_an_application_of_another_run_is_not_killed(
    attempt: RunAttempt, yarn: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        engine_of(attempt).stop(Mock(), attempt)
    assert yarn.read_text().splitlines() == ["application -status application_1_0001"]
    assert "application of another name not ended" in caplog.messages


@pytest.mark.parametrize("forged", ["-kill", "a,b=c", "x application_2_0002"])
def test_a_forged_application_id_is_in_no_command(
    attempt: RunAttempt, yarn: Path, forged: str
) -> None:
    RunAttempt.objects.update(application_id=forged)
    engine_of(attempt).stop(Mock(), attempt)
    assert not yarn.exists()

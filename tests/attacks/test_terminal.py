"""Output of user code is no command for the terminal of its reader."""

import json
import re
from io import StringIO
from pathlib import Path
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.utils import timezone

from accounts_app.management.command import Refused
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, Run, RunAttempt, RunLog, RunState
from slicewise_server.stack import definitions
from tests import factories

CLIPBOARD = "\x1b]52;c;cm0gLXJmIH4=\x07"
LINK = "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\"
C1 = "\x9b2J\x9d0;title\x9c"
HOSTILE = f"{CLIPBOARD}{LINK}{C1}\x1b[2J\x7f\x08\rover\tkept"
# But for newline and tab, nothing of C0 and C1.
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
PROJECT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(raw_flights: Asset) -> Run:
    """Create a failed run whose code has printed sequences for terminals."""
    ada = factories.person("ada", is_superuser=True)
    materialize(MaterializeRequest(asset=raw_flights, selection="2013-01-01"), user=ada)
    Run.objects.update(
        state=RunState.FAILED, error=HOSTILE, error_kind="code", ended_at=timezone.now()
    )
    run = Run.objects.get()
    attempt = RunAttempt.objects.create(
        run=run, number=1, token=uuid4(), started_at=timezone.now(), error=HOSTILE,
        traceback=f"Traceback\n  line\n{HOSTILE}",
    )  # fmt: skip
    for sequence, text in enumerate(("one\r\n", HOSTILE, "\ntwo\x1b", "[31mred\n")):
        RunLog.objects.create(attempt=attempt, sequence=sequence, text=text)
    return run


def said(*words: str) -> str:
    out, err = StringIO(), StringIO()
    call_command(*words, stdout=out, stderr=err)
    return out.getvalue() + err.getvalue()


@pytest.mark.parametrize(
    "words", [("runs", "list"), ("runs", "show", "RUN"), ("runs", "logs", "RUN")]
)
def test_sequences_are_written_out(run: Run, words: tuple[str, ...]) -> None:
    printed = said(*(str(run.pk) if word == "RUN" else word for word in words))
    assert not CONTROLS.search(printed)
    assert r"\x1b]52;c;" in printed
    assert r"\x9b2J" in printed


def test_lines_and_tabs_of_a_log_stay(run: Run) -> None:
    printed = said("runs", "logs", str(run.pk))
    assert printed.startswith("one\n\\x1b]52")
    assert "over\tkept\ntwo\\x1b[31mred\n" in printed


@pytest.mark.parametrize("words", [("runs", "show", "RUN"), ("runs", "logs", "RUN")])
def test_json_is_exact_and_harmless(run: Run, words: tuple[str, ...]) -> None:
    printed = said(*(str(run.pk) if word == "RUN" else word for word in words), "--json")
    assert not CONTROLS.search(printed)
    read = json.loads(printed)
    text = "".join(entry["text"] for entry in read) if isinstance(read, list) else read["error"]
    assert HOSTILE in text


def test_a_refusal_is_harmless() -> None:
    assert not CONTROLS.search(str(Refused(f"no such thing: {HOSTILE}")))


def test_the_check_of_files_is_harmless(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "broken.py").write_text(f"raise ValueError({HOSTILE!r})")
    assert definitions.main(["check", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert r"\x1b]52;c;" in printed.err
    assert not CONTROLS.search(printed.out + printed.err)


def test_no_command_writes_past_the_base() -> None:
    writing = re.compile(r"\b(stdout|stderr)\.write\(|\bprint\(")
    commands = [*PROJECT.glob("*_app/management/**/*.py")]
    assert len(commands) > 5
    past = [
        path.name
        for path in commands
        if path.name != "command.py" and writing.search(path.read_text())
    ]
    assert past == []

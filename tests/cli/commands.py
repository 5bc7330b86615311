"""Commands run in this process: output and refusals."""

import json
from io import StringIO
from typing import Any
from unittest.mock import patch

import pytest
from django.core.management import ManagementUtility, call_command
from django.db import connections


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Return the exit code and standard error of a refused command, as a shell sees both."""
    # A process that ends closes its connections; the test's transaction is on one of them.
    with patch.object(connections, "close_all"), pytest.raises(SystemExit) as ended:
        ManagementUtility(["manage.py", *arguments]).execute()
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert isinstance(ended.value.code, int)
    return ended.value.code, error


def output_of(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def notes_of(*arguments: str) -> str:
    """Return the notes for people, which are no part of the output."""
    notes = StringIO()
    call_command(*arguments, stdout=StringIO(), stderr=notes)
    return notes.getvalue()


def json_of(*arguments: str) -> Any:
    return json.loads(output_of(*arguments, "--json"))

"""The command `slicewise` itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from config import cli, up
from config.stack import StackError
from config.stack.folder import PROJECT, default_folder


def test_help_is_no_error_and_nothing_said_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    assert cli.main([]) == 2
    assert "slicewise up" in capsys.readouterr().out


def test_a_command_without_a_running_stack_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="slicewise up"):
        up.find_settings({"SLICEWISE_DATA": str(tmp_path)})


def test_settings_that_are_given_need_no_running_stack(tmp_path: Path) -> None:
    env = dict.fromkeys(up.NEEDED, "given")
    up.find_settings(env)
    assert set(env.values()) == {"given"}


def test_the_data_folder_of_an_ordinary_user_is_in_the_project(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert default_folder({}) == PROJECT / ".slicewise"


def test_the_data_folder_of_root_is_outside_the_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert PROJECT not in default_folder({}).parents


def test_definitions_are_checked_without_a_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good.py").write_text("VALUE = 1\n")
    assert cli.main(["definitions", "check", str(tmp_path)]) == 0
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    assert cli.main(["definitions", "check", str(tmp_path)]) == 1
    assert "nothing_of_this_name" in capsys.readouterr().err


def test_exec_wants_a_command() -> None:
    assert cli.main(["exec", "--"]) == 2

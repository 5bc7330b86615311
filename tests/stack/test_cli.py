"""The command `slicewise` itself."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from django.urls import reverse

from slicewise_server import command_urls
from slicewise_server.stack import cli, ports, running, up
from slicewise_server.stack.errors import StackError
from slicewise_server.stack.folder import PROJECT, default_folder
from tests.processes import START_SECONDS


def test_help_is_no_error_and_nothing_said_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    assert cli.main([]) == 2
    assert "slicewise up" in capsys.readouterr().out


def test_a_command_without_a_running_stack_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="slicewise up"):
        running.find_settings({"SLICEWISE_DATA": str(tmp_path)})


@pytest.mark.parametrize("words", [["assets", "--help"], ["backfill", "create", "-h"]])
def test_the_help_of_a_command_needs_no_running_stack(words: list[str], tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "slicewise_server.stack.cli", *words],
        env={"PATH": os.environ["PATH"], "SLICEWISE_DATA": str(tmp_path)},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith(f"usage: slicewise {words[0]}")
    assert list(tmp_path.iterdir()) == []


def test_settings_that_are_given_need_no_running_stack(tmp_path: Path) -> None:
    env = dict.fromkeys(running.NEEDED, "given")
    running.find_settings(env)
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


def test_a_port_that_is_named_and_taken_is_refused_before_anything_is_started(
    folder: Path,
) -> None:
    with socket.create_server((ports.HOST, 0)) as server:
        port = str(server.getsockname()[1])
        result = subprocess.run(
            [sys.executable, "-m", "slicewise_server.stack.cli", "up", "--port", port],
            env={**os.environ, "SLICEWISE_DATA": str(folder / "data")},
            cwd=PROJECT,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
    assert result.returncode == 1
    assert result.stderr.startswith(f"slicewise: Port {port} is taken: ")
    assert "Slicewise is at" not in result.stdout
    assert not list(folder.rglob("postgresql*"))


def test_the_usual_port_is_left_to_whoever_has_it_and_that_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server((ports.HOST, 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(up, "PORT", port)
        monkeypatch.setenv("SLICEWISE_DATA", str(folder))
        stack = up.embedded()
        stack.claim_port()
        up.announce(stack)
        stack.stop()
    output = capsys.readouterr().out
    assert f"Port {port} is taken: the pages are on another one." in output
    assert "Code of assets" in output  # and what it is not kept from
    assert f":{port}\n" not in output


def test_the_password_is_printed_at_the_first_start_and_to_terminals(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLICEWISE_DATA", str(folder))
    stack = up.embedded()
    stack.claim_port()
    password = stack.admin_password

    def announced() -> bool:
        up.announce(stack)
        output = capsys.readouterr().out
        assert password in output or f"{folder / 'credentials.json'}\n" in output
        return password in output

    assert announced()
    assert not announced()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert announced()
    stack.stop()


@pytest.mark.parametrize("port", ["0", "-1", "65536", "http"])
def test_an_invalid_port_is_bad_usage(port: str) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["up", f"--port={port}"])
    assert ended.value.code == 2


def test_exec_wants_a_command() -> None:
    assert cli.main(["exec", "--"]) == 2


def test_it_says_its_own_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("slicewise ")


@pytest.mark.parametrize("buffering", [{}, {"PYTHONUNBUFFERED": "1"}])
@pytest.mark.parametrize(
    "words", [["--help"], ["definitions", "check", "FOLDER"], ["runs", "--help"]]
)
def test_a_command_into_a_pipe_that_nobody_reads_ends_quietly(
    words: list[str], buffering: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "a.py").write_text("from slicewise import Asset\nAsset('a')\n")
    typed = [str(tmp_path) if word == "FOLDER" else word for word in words]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    reader, writer = os.pipe()
    os.close(reader)
    try:
        result = subprocess.run(
            [sys.executable, "-m", "slicewise_server.stack.cli", *typed],
            cwd=PROJECT,
            env=env | buffering,
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writer)
    assert result.stderr == ""


def test_an_unknown_command_is_bad_usage_and_the_nearest_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in running.NEEDED:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SLICEWISE_DATA", str(tmp_path))
    assert cli.main(["asets", "list"]) == 2
    assert "Did you mean 'assets'?" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        raise SystemExit(cli.main(["migrate"]))
    assert "Nothing is running on" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["changepassword", "createsuperuser"])
def test_a_command_of_a_django_app_is_taken(command: str) -> None:
    settings = {
        "DATABASE_URL": "postgres://nobody@127.0.0.1:9/nothing",
        "REDIS_URL": "redis://127.0.0.1:9/0",
        "SPARK_REMOTE": "sc://127.0.0.1:9",
        "SECRET_KEY": "unused",
        "SLICEWISE_DATA": "/nonexistent",
    }
    answer = subprocess.run(
        [sys.executable, "-m", "slicewise_server.stack.cli", command, "--help"],
        env={"PATH": os.environ["PATH"], **settings},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith(f"usage: slicewise {command}")


def test_a_bundle_of_the_environment_without_a_folder_is_refused_with_its_setting(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLICEWISE_DATA", str(folder))
    monkeypatch.setenv("SLICEWISE_BUNDLES", f"shop={folder / 'absent'}")
    assert cli.main(["up"]) == 1
    assert "SLICEWISE_BUNDLES: 'shop=" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["assets", "runs", "backfill", "partitions", "sync"])
def test_a_command_imports_neither_pages_nor_workers(command: str) -> None:
    code = f"""
import sys
from slicewise_server.stack import cli
try:
    cli.main([{command!r}, "--help"])
except SystemExit as ended:
    assert not ended.code
heavy = (
    "celery", "redis", "rest_framework.views", "django.contrib.admin", "drf_spectacular",
    "structlog", "django.db.migrations", "assets_app.scheduling",
)
print([name for name in heavy if name in sys.modules])
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines()[-1] == "[]"


def test_commands_print_the_addresses_that_are_served() -> None:
    for address in command_urls.addresses:
        kwargs = {"pk": 1} if "<int:pk>" in str(address.pattern) else {}
        name = f"api:{address.name}"
        printed = reverse(name, urlconf="slicewise_server.command_urls", kwargs=kwargs)
        assert printed == reverse(name, urlconf="slicewise_server.urls", kwargs=kwargs)

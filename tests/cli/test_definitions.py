"""`slicewise definitions check`: what it says of good files, and of broken ones."""

import json
from pathlib import Path

import pytest

from config.cli import main

HEADER = "from slicewise import *\n"
GOOD = (
    "raw = Asset('raw')\n"
    "@asset(schedule='@daily', timezone='Europe/Berlin', partition='auto')\n"
    "def daily(raw): ...\n"
    "@asset.multi(outlets=[Asset('x'), Asset('y')], schedule=daily | raw)\n"
    "def split(daily): ...\n"
)
BROKEN = "@asset(retries=-1)\ndef flights(): ...\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.py").write_text(HEADER + GOOD)
    return tmp_path


def check(*words: object) -> int:
    return main(["definitions", "check", *map(str, words)])


def test_good_files_are_told_with_partition_schedule_and_inlets(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(folder) == 0
    said, wrong = capsys.readouterr()
    assert said.splitlines() == [
        "good.py:3: daily",
        "    partition: PartitionByInterval('@daily', timezone='Europe/Berlin')",
        "    schedule:  @daily (Europe/Berlin)",
        "    reads:     raw",
        "good.py:5: x, y",
        "    partition: none",
        "    schedule:  daily | raw",
        "    reads:     daily",
        "good.py:2: raw",
        "    partition: none",
        "    schedule:  written by something else",
        "1 file, 3 assets with a function, 1 without, no error",
    ]
    assert wrong == ""


def test_what_is_broken_is_told_file_by_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.py").write_text(HEADER + BROKEN)
    (folder / "b.py").write_text("1 / 0\n")
    assert check(folder) == 1
    assert capsys.readouterr().err.splitlines() == [
        "a.py:2: asset 'flights': retries is a whole number from 0, not -1",
        "b.py:1: ZeroDivisionError: division by zero",
        "3 files, 3 assets with a function, 1 without, 2 errors",
    ]


def test_one_file_is_checked_without_those_beside_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.py").write_text(HEADER + BROKEN)
    assert check(folder / "good.py") == 0
    assert check(folder / "a.py") == 1
    assert capsys.readouterr().err.startswith("a.py:2: asset 'flights': ")


def test_a_uri_that_breaks_its_rule_is_a_warning_beside_the_asset(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "good.py").write_text(f"{HEADER}odd = Asset('odd', uri='s3://')\n")
    assert check(folder) == 0
    assert "good.py:2: asset 'odd': warning: 's3://' stays as written" in capsys.readouterr().err


def test_the_whole_declaration_is_printed_as_json(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(folder, "--json") == 0
    declared = json.loads(capsys.readouterr().out)
    assert [producer["name"] for producer in declared["producers"]] == ["daily", "split"]


def test_what_is_neither_a_folder_nor_a_python_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    for path in (tmp_path / "notes.txt", tmp_path / "nowhere"):
        with pytest.raises(SystemExit) as ended:
            check(path)
        assert ended.value.code == 2

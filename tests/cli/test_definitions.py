"""`slicewise definitions check`: its output for good files and for broken files."""

import json
import os
from pathlib import Path

import pytest

from slicewise.runner.loader_users import LOADER_USERS, has_loader_users
from slicewise_server.stack.cli import main

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
    output, wrong = capsys.readouterr()
    assert output.splitlines() == [
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
        "    schedule:  written by another program",
        "1 file, 3 assets with a function, 1 without, no error",
    ]
    assert wrong == ""


def test_errors_are_listed_file_by_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.py").write_text(HEADER + BROKEN)
    (folder / "b.py").write_text("1 / 0\n")
    assert check(folder) == 1
    assert capsys.readouterr().err.splitlines() == [
        "a.py:2: asset 'flights': retries is a whole number from 0, not -1",
        "b.py:1: ZeroDivisionError: division by zero",
        "3 files, 3 assets with a function, 1 without, 2 errors",
    ]


@pytest.mark.parametrize(
    ("called", "advice"),
    [
        ("Overlap(nonexistant='ignore')", "did you mean 'nonexistent'?"),
        ("All(x=1)", "All takes no arguments"),
        ("PartitionByInterval('@daily', exlude='0 0 * * 6')", "did you mean 'exclude'?"),
    ],
)
def test_an_argument_that_a_class_does_not_have_is_told_with_the_nearest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], called: str, advice: str
) -> None:
    (tmp_path / "a.py").write_text(f"{HEADER}{called}\n")
    assert check(tmp_path) == 1
    first, *_ = capsys.readouterr().err.splitlines()
    assert first.endswith(f"; {advice}")


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


def test_assets_in_one_place_are_a_warning_that_names_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.py").write_text(
        f"{HEADER}@asset(uri='file:///lake/x')\ndef one(): ...\n"
        "@asset(uri='/lake//x/')\ndef two(): ...\n"
        "@asset(uri='/lake/y')\ndef three(): ...\n"
        "seen, known = Asset('seen', uri='/lake/y'), Asset('known', uri='/lake/z')\n"
        "@asset\ndef four(): ...\n@asset\ndef five(): ...\n"
        "same = Asset('same', uri='/lake/z')\n"
    )
    assert check(tmp_path) == 0
    assert capsys.readouterr().err.splitlines() == [
        f"a.py:{line}: asset {name!r}: warning: {twin!r} has the same uri: each replaces the data"
        " of the other"
        for line, name, twin in ((2, "one", "two"), (4, "two", "one"), (6, "three", "seen"))
    ]


def test_the_whole_declaration_is_printed_as_json(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(folder, "--json") == 0
    declared = json.loads(capsys.readouterr().out)
    assert [producer["name"] for producer in declared["producers"]] == ["daily", "split"]


def test_paths_other_than_folders_and_python_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    for path in (tmp_path / "notes.txt", tmp_path / "nowhere"):
        with pytest.raises(SystemExit) as ended:
            check(path)
        assert ended.value.code == 2


def test_a_name_that_no_file_declares_is_a_warning_with_what_is_spelled_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.py").write_text(
        f"{HEADER}raw_flights = Asset('raw_flights')\n"
        "@asset(schedule=Asset.ref('raw_fligths') | Asset.ref('weather'))\ndef daily(): ...\n"
    )
    assert check(tmp_path) == 0
    assert capsys.readouterr().err.splitlines() == [
        "a.py:3: asset 'daily': warning: no file here declares 'raw_fligths' (did you mean"
        " 'raw_flights'?); a server looks for it in its other bundles",
        "a.py:3: asset 'daily': warning: no file here declares 'weather'; a server looks for it in"
        " its other bundles",
    ]


def test_declarations_that_every_server_refuses_are_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, arguments in enumerate(
        (
            "depends_on_past=True",
            "outlet_validations=[AssetValidation.not_null('a')]",
            "partition=PartitionBySequence(range(10_001))",
            "schedule=Asset.ref('b'), pending='latest', partition=PartitionByInterval('@daily')",
        )
    ):
        (tmp_path / f"f{number}.py").write_text(f"{HEADER}@asset({arguments})\ndef a(): ...\n")
    assert check(tmp_path) == 1
    assert "4 errors" in capsys.readouterr().err


def test_letters_of_segments_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text(
        f"{HEADER}@asset(partition=PartitionBySequence(['süd']))\ndef a(): ...\n"
    )
    assert check(tmp_path) == 0
    assert "PartitionBySequence([süd])" in capsys.readouterr().out


def test_segments_that_do_not_pair_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shop.py").write_text(
        HEADER + "hours, days = PartitionByInterval('@hourly'), PartitionByInterval('@daily')\n"
        "north, shoes = PartitionBySequence(['north']), PartitionBySequence(['shoes'])\n"
        "@asset(partition=PartitionByProduct({'hour': hours, 'region': north}))\n"
        "def sales(): ...\n"
        "@asset(schedule=sales, partition=PartitionByProduct({'day': days, 'product': shoes}))\n"
        "def other(): ...\n"
        "@asset(partition=PartitionByProduct({'day': days, 'region': shoes}))\n"
        "def disjoint(sales): ...\n"
        "@asset(upstream={'sales': All()}, partition=PartitionByProduct({'d': days, 'p': shoes}))\n"
        "def told(sales): ...\n"
        "@asset(partition=PartitionByProduct([days, north]))\n"
        "def listed(): ...\n"
        "@asset(partition=north)\n"
        "def good(listed): ...\n"
    )
    assert check(tmp_path) == 0
    assert capsys.readouterr().err.splitlines() == [
        "shop.py:6: note: its segments (product) and the segments of 'sales' (region) have"
        " different names, so that each partition needs all segments of 'sales'; give equal"
        " dimensions one name (name=... on the definition)",
        "shop.py:8: note: its segments 'region' have no key in common with 'region' of 'sales', so"
        " that no partition can be materialized; give different dimensions different names",
    ]


@pytest.mark.parametrize(
    ("partition", "unmatched"),
    [
        ('"@daily", exclude="0 5 * * *"', ["0 5 * * *"]),
        ('"@daily", exclude=["0 0 * * 6,0", "30 0 * * *", date(2024, 12, 25)]', ["30 0 * * *"]),
        # Mondays only: no Tuesday starts a week, nor does noon of a Monday.
        (
            '"0 0 * * 1", exclude=[date(2024, 7, 2), datetime(2024, 7, 1, 12), date(2024, 7, 1)]',
            ["2024-07-02", "2024-07-01 12:00:00+00:00"],
        ),
        ('"@hourly", exclude=["30 * * * *", "0 3 29 2 *"]', ["30 * * * *"]),
        ('"@hourly", timezone="Europe/Berlin", exclude="0 2 * * *"', []),
        # Holidays before the start are no mistake: lists of them are shared.
        ('"@daily", start="2024-01-01", exclude=date(2020, 12, 25)', []),
        ('"@yearly", exclude="0 0 * * 0"', []),
        ('timedelta(hours=6), start="2024-01-01", exclude="0 3 * * *"', ["0 3 * * *"]),
    ],
)
def test_an_exclusion_that_takes_out_no_window_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], partition: str, unmatched: list[str]
) -> None:
    (tmp_path / "cut.py").write_text(
        f"{HEADER}from datetime import date, datetime, timedelta\n"
        f"@asset(partition=PartitionByInterval({partition}))\ndef cut(): ...\n"
    )
    assert check(tmp_path) == 0
    warnings = capsys.readouterr().err.splitlines()
    assert [line.split("exclude='")[1].split("'")[0] for line in warnings] == unmatched
    assert all(line.startswith("cut.py:3: asset 'cut': warning: ") for line in warnings)


@pytest.mark.parametrize(
    ("partition", "is_empty"),
    [
        ('"@daily", exclude="0 0 * * *"', True),
        ('"@daily", exclude="0 * * * *", start="2024-01-01"', True),
        ('"@daily", exclude=["0 0 * * 1-5", "0 0 * * 0,6"], end="2024-01-01"', True),
        ('"@daily", start="2024-01-06", end="2024-01-08", exclude="0 0 * * 6,0"', True),
        ('"@daily", start="2024-01-05", end="2024-01-08", exclude="0 0 * * 6,0"', False),
        ('"@hourly", timezone="Europe/Berlin", exclude="0 * * * *"', True),
        # Of 29 February something is left every four years.
        ('"@daily", start="2024-03-01", exclude=["0 0 * 1,3-12 *", "0 0 1-28 2 *"]', False),
        ('"@hourly", exclude="0 1-23 * * *"', False),
    ],
)
def test_an_exclusion_that_leaves_no_window_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], partition: str, is_empty: bool
) -> None:
    (tmp_path / "cut.py").write_text(
        f"{HEADER}@asset(partition=PartitionByInterval({partition}))\ndef cut(): ...\n"
    )
    assert check(tmp_path) == 0
    expected = "cut.py:2: asset 'cut': warning: exclude= excludes every window: the asset has no"
    assert capsys.readouterr().err == (f"{expected} partition\n" if is_empty else "")


DAYS = 'partition=PartitionByInterval("@daily", start="2024-01-01")'


@pytest.mark.parametrize(
    ("options", "unused"),
    [
        ("retry_delay=5", "retry_delay"),
        ("retry_delay=5, retries=1", None),
        ('strategy="range"', "strategy='range'"),
        (f'strategy="range", {DAYS}', None),
        (f'on_partial="publish", {DAYS}', 'on_partial="publish"'),
        (f'on_partial="publish", strategy=7, {DAYS}', None),
        ('outside="drop"', 'outside="drop"'),
        (f'outside="drop", {DAYS}', None),
        ("max_active_runs=2", "max_active_runs"),
        (f"max_active_runs=2, {DAYS}", None),
        ("paused=True", "paused=True"),
        ('paused=True, schedule="@daily"', None),
        ("paused=True, schedule=Asset.ref('up')", None),
        ('write_mode="append"', "write_mode='append'"),
        ('write_mode="append", uri="file:///lake/there"', None),
        ('timezone="Europe/Berlin"', "timezone='Europe/Berlin'"),
        ('timezone="Europe/Berlin", schedule="@daily"', None),
        ('timezone="Europe/Berlin", schedule=Asset.ref("up")', "timezone='Europe/Berlin'"),
        ('timezone="Europe/Berlin", schedule=Asset.ref("up") & Cron("@daily")', None),
    ],
)
def test_an_option_without_effect_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: str, unused: str | None
) -> None:
    (tmp_path / "made.py").write_text(
        f"{HEADER}from slicewise import Cron\n@asset({options})\ndef made(): ...\n"
    )
    assert check(tmp_path) == 0
    warnings = [line for line in capsys.readouterr().err.splitlines() if "no effect" in line]
    expected = [f"made.py:3: asset 'made': warning: {unused} has no effect"] if unused else []
    assert [line.rpartition(":")[0] for line in warnings] == expected


def test_a_pause_longer_than_the_longest_one_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "made.py").write_text(
        f"{HEADER}@asset(retries=1, retry_delay=7200)\ndef made(): ...\n"
    )
    assert check(tmp_path) == 0
    assert "warning: retry_delay acts as an hour" in capsys.readouterr().err


def test_files_are_loaded_apart_from_the_packages_of_the_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("assets_app", "slicewise_server", "tests"):
        (tmp_path / f"curious_{name}.py").write_text(f"import {name}\n")
    assert check(tmp_path) == 1
    assert capsys.readouterr().err.splitlines()[:3] == [
        f"curious_{name}.py:1: ModuleNotFoundError: No module named {name!r}"
        for name in ("assets_app", "slicewise_server", "tests")
    ]


@pytest.mark.parametrize("is_one_file", [False, True])
def test_files_are_loaded_in_another_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_one_file: bool
) -> None:
    (tmp_path / "a.py").write_text(
        "import os\nprint(os.getpid(), os.geteuid(), os.environ.get('SECRET_KEY'))\n"
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SECRET_KEY", "of the server")
        assert check(tmp_path / "a.py" if is_one_file else tmp_path) == 0
    process, user, *secret = capsys.readouterr().err.split(maxsplit=2)
    assert int(process) != os.getpid()
    assert secret == ["None\n"]
    if has_loader_users():
        assert int(user) in LOADER_USERS


@pytest.mark.parametrize("is_one_file", [False, True])
def test_files_get_the_variables_of_runs_and_no_secret_of_an_ordinary_user(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    is_one_file: bool,
) -> None:
    (tmp_path / "a.py").write_text(
        "import os\n"
        "names = ('API_KEY', 'LAKE', 'REGION', 'LD_LIBRARY_PATH')\n"
        "print([os.environ.get(name) for name in names])\n"
    )
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    values = {
        "API_KEY": "s3cret",
        "LAKE": "s3://lake",
        "REGION": "eu",
        "LD_LIBRARY_PATH": "/lost",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SLICEWISE_RUNNER_ENV", "OTHER, REGION")
    assert check(tmp_path / "a.py" if is_one_file else tmp_path) == 0
    assert capsys.readouterr().err == "[None, 's3://lake', 'eu', '/lost']\n"


def test_a_file_that_never_ends_is_ended_in_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADER_TIMEOUT_SECONDS", "1")
    # A busy machine takes longer than the default to start the process that keeps the loader.
    monkeypatch.setattr("slicewise.runner.loader_process._KEEPER_SECONDS", 120)
    (tmp_path / "a.py").write_text("import time\ntime.sleep(600)\n")
    assert check(tmp_path) == 1
    assert "were not loaded within 1 s" in capsys.readouterr().err


def test_folders_that_a_server_refuses_as_bundles_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.py").write_text("")
    (tmp_path / "out").symlink_to("/etc/hostname")
    assert check(tmp_path) == 1
    assert "out is a link that leads out of the bundle" in capsys.readouterr().err


def test_a_file_that_cannot_be_read_is_told_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "a.py")

    (tmp_path / "a.py").write_text("")
    monkeypatch.setattr("slicewise_server.stack.definition_loading.archive", refuse)
    assert check(tmp_path) == 1
    assert "Permission denied: 'a.py'" in capsys.readouterr().err

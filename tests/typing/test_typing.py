"""Messages of a type checker for people who have installed nothing but the package."""

import re
import subprocess
import sys
import tomllib
import venv
from collections import defaultdict
from pathlib import Path
from shutil import copyfile

import pytest

from slicewise.loading.archives import load_bundle

HERE = Path(__file__).parent
PROJECT = HERE.parent.parent
PACKAGE = PROJECT / "slicewise"
EXPECTED = re.compile(r"  # error: (.+)$")
REPORTED = re.compile(r"^wrong\.py:(\d+): error: (.+?)  \[[\w-]+\]$", re.MULTILINE)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a virtual environment with the files of the package that people get."""
    folder = tmp_path_factory.mktemp("typing") / "env"
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    globs = settings["tool"]["setuptools"].get("package-data", {}).get("slicewise", [])
    for pattern in ("**/*.py", *globs):
        for file in PACKAGE.glob(pattern):
            copy = site / file.relative_to(PROJECT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copyfile(file, copy)
    return folder


def mypy(environment: Path, *files: Path) -> str:
    """Run mypy on files in a folder of their own, as people's files are, and return its lines."""
    project = environment.parent / files[0].stem
    project.mkdir()
    for file in files:
        copyfile(file, project / file.name)
    checked = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--config-file", str(HERE / "mypy.ini")),
            *("--python-executable", str(environment / "bin/python")),
            *("--cache-dir", str(environment.parent / "cache"), *(file.name for file in files)),
        ],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert not checked.stderr, checked.stderr
    return checked.stdout


def test_a_bundle_of_all_kinds_of_assets_has_no_error(environment: Path) -> None:
    files = sorted((HERE / "good").glob("*.py"))
    assert mypy(environment, *files) == f"Success: no issues found in {len(files)} source files\n"


def test_mistakes_are_found_where_they_are_marked(environment: Path) -> None:
    errors: dict[int, list[str]] = defaultdict(list)
    for line, message in REPORTED.findall(mypy(environment, HERE / "wrong.py")):
        errors[int(line)].append(message)
    lines = enumerate((HERE / "wrong.py").read_text().splitlines(), start=1)
    marked = {number: mark[1] for number, line in lines if (mark := EXPECTED.search(line))}
    assert len(marked) > 30
    assert {
        number: (marked.get(number, "no error"), errors.get(number, []))
        for number in marked.keys() | errors.keys()
        if not any(marked.get(number, "\n") in message for message in errors.get(number, ()))
    } == {}


def test_the_bundle_that_is_checked_is_one_that_loads() -> None:
    declared = load_bundle(HERE / "good")
    assert [file["error"] for file in declared["files"] if file["error"]] == []
    assert {producer["name"] for producer in declared["producers"]} >= {"orders", "split", "models"}

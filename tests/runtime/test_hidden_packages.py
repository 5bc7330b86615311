"""Bundles may have files of any name: no package of the server is importable in a runner."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from slicewise.process.hidden_packages import SERVER_PACKAGES
from slicewise.process.python_start import python_path
from tests.docs.documents import PROJECT
from tests.runtime.runs import Runs

LOADER = [sys.executable, "-m", "slicewise.loading.loader"]
LEFT_ALONE = {"slicewise"}
# Names at the top of the repository, and names that people often give to modules of their own.
TOP = sorted(
    {
        path.stem
        for path in PROJECT.iterdir()
        if (path.is_dir() or path.suffix == ".py") and path.stem.isidentifier()
    }
    - LEFT_ALONE
)
NAMES = sorted({*TOP, "config", "common", "stack", "web", "conftest"})


def report_of(bundle: Path, python_path: str = str(PROJECT)) -> dict[str, Any]:
    """Return the report of a real loader process, started as servers start the process."""
    receiving, sending = os.pipe()
    with os.fdopen(receiving, "rb") as answer:
        result = subprocess.run(
            [*LOADER, str(bundle), f"--report-fd={sending}"],
            pass_fds=[sending],
            cwd=bundle,
            env={**os.environ, "PYTHONPATH": python_path},
            check=True,
        )
        os.close(sending)
        assert result.returncode == 0
        report: dict[str, Any] = json.loads(answer.read())
    return report


def test_the_repository_has_the_server_s_packages() -> None:
    assert set(TOP) >= SERVER_PACKAGES


def test_a_bundle_has_files_named_like_every_package_of_the_repository(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text(f"VALUE = {name!r}\n")
    lines = [f"import {name}\nassert {name}.VALUE == {name!r}\n" for name in NAMES]
    (tmp_path / "declared.py").write_text(
        "from slicewise import asset\n" + "".join(lines) + "\n@asset\ndef made(): ...\n"
    )
    report = report_of(tmp_path)
    assert [file["error"] for file in report["files"] if file["error"]] == []
    assert [producer["name"] for producer in report["producers"]] == ["made"]


def test_a_bundle_has_packages_named_like_every_package_of_the_repository(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
        (tmp_path / name / "models.py").write_text(f"VALUE = {name!r}\n")
    lines = [f"from {name}.models import VALUE\nassert VALUE == {name!r}\n" for name in NAMES]
    (tmp_path / "declared.py").write_text("".join(lines))
    assert [file["error"] for file in report_of(tmp_path)["files"] if file["error"]] == []


@pytest.mark.parametrize("name", TOP)
def test_code_of_a_definition_file_imports_no_package_of_the_server(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "curious.py").write_text(f"import {name}\n")
    (file,) = report_of(tmp_path)["files"]
    assert file["error"]["message"] == f"ModuleNotFoundError: No module named {name!r}"


@pytest.mark.parametrize("python_path", [str(PROJECT), ""], ids=["by folder", "by installation"])
def test_a_hidden_package_looks_like_one_that_is_not_installed(
    python_path: str, tmp_path: Path
) -> None:
    lines = [f"assert find_spec({name!r}) is None, {name!r}" for name in TOP]
    lines += ["import slicewise", "assert find_spec('slicewise.uris') is not None"]
    (tmp_path / "a.py").write_text("\n".join(["from importlib.util import find_spec", *lines]))
    (tmp_path / "b.py").write_text(
        "from importlib.util import find_spec\nfind_spec('assets_app.models')\n"
    )
    looked, inside = report_of(tmp_path, python_path)["files"]
    assert looked["error"] is None
    assert inside["error"]["message"] == "ModuleNotFoundError: No module named 'assets_app'"


def test_no_hidden_package_is_listed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "import pkgutil\n"
        "names = {module.name for module in pkgutil.iter_modules()}\n"
        f"assert not names & {set(TOP)}, names\n"
        "assert {'slicewise', 'json', 'a'} <= names, names\n"
        "import slicewise\n"
        "assert 'uris' in {module.name for module in pkgutil.iter_modules(slicewise.__path__)}\n"
    )
    (file,) = report_of(tmp_path)["files"]
    assert file["error"] is None


def test_a_python_that_a_run_starts_sees_no_package_of_the_server(runs: Runs) -> None:
    code = (
        "import importlib.util, pkgutil, sys; "
        "print([name for name in sys.argv[1:] if importlib.util.find_spec(name)]); "
        "print({module.name for module in pkgutil.iter_modules()} & set(sys.argv[1:]))"
    )
    runs.define(f"""
        @asset()
        def curious():
            words = [sys.executable, "-c", {code!r}, *{TOP}, "slicewise"]
            subprocess.run(words, cwd={str(PROJECT)!r})
    """)
    log = runs.run("curious").log
    assert log.splitlines() == ["['slicewise']", "{'slicewise'}"]


def test_a_python_that_a_definition_file_starts_sees_no_package_of_the_server(
    tmp_path: Path,
) -> None:
    code = "import importlib.util as u, sys; print([n for n in sys.argv[1:] if u.find_spec(n)])"
    (tmp_path / "a.py").write_text(
        "import subprocess, sys\n"
        f"command = [sys.executable, '-c', {code!r}, *{TOP}, 'slicewise']\n"
        "raise ValueError(subprocess.run(command, capture_output=True, text=True).stdout)\n"
    )
    (file,) = report_of(tmp_path)["files"]
    assert file["error"]["message"] == "ValueError: ['slicewise']"


def test_a_run_has_its_own_modules_and_none_of_the_server(runs: Runs) -> None:
    # The test's own process, which loads the bundle as well, has imported neither.
    runs.bundle.mkdir()
    for name in ("examples", "config"):
        (runs.bundle / f"{name}.py").write_text(f"VALUE = {name!r}\n")
    runs.define("""
        @asset()
        def curious():
            import examples, config
            print(examples.VALUE, config.VALUE)
            for name in ("slicewise_server", "backfills_app", "assets_app", "manage", "tests"):
                try:
                    __import__(name)
                except ModuleNotFoundError as error:
                    print(error)
    """)
    outcome = runs.run("curious")
    assert outcome.types == ["started", "finished", "exited"]
    assert outcome.log.splitlines() == [
        "examples config",
        *(
            f"No module named {name!r}"
            for name in ("slicewise_server", "backfills_app", "assets_app", "manage", "tests")
        ),
    ]


def test_a_python_of_another_program_hides_them_and_runs_the_next_sitecustomize(
    tmp_path: Path,
) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('the next one')\n")
    code = (
        "import importlib.util, sys\n"
        "print([name for name in sys.argv[1:] if importlib.util.find_spec(name)])\n"
        "print('slicewise' in sys.modules)\n"
        "from slicewise.process.hidden_packages import hide_server_packages\n"
        "before = [*sys.path_hooks]\n"
        "hide_server_packages()\n"
        "print(sys.path_hooks == before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *TOP, "slicewise"],
        env={"PYTHONPATH": python_path(f"{tmp_path}:{PROJECT}")},
        cwd=PROJECT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["the next one", "['slicewise']", "False", "True"]


def test_finders_of_other_packages_work_as_before() -> None:
    code = (
        "import copy, importlib, sys\n"
        "class Old:\n"
        "    def find_module(self, *_): return None\n"
        "class New:\n"
        "    seen = 0\n"
        "    def find_spec(self, *_): return None\n"
        "    def invalidate_caches(self): self.seen += 1\n"
        "old, new = Old(), New()\n"
        "sys.meta_path += [old, new]\n"
        "from slicewise.process.hidden_packages import hide_server_packages\n"
        "hide_server_packages()\n"
        "importlib.invalidate_caches()\n"
        "copy.copy(sys.meta_path[-1])\n"
        "print(new.seen, new in sys.meta_path, any(one is old for one in sys.meta_path))\n"
        "sys.meta_path.remove(new)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1 True True\n"

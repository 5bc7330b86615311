"""Spark on the Java that a wheel carries."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from slicewise_server.stack import machine
from slicewise_server.stack.java import JAVA_WRAPPER, MISSING_MODULE


def test_the_wrapper_drops_the_one_argument_that_the_carried_java_does_not_know(
    tmp_path: Path,
) -> None:
    java = tmp_path / "java"
    java.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(JAVA_WRAPPER.format(module=MISSING_MODULE, java=java))
    for script in (java, wrapper):
        script.chmod(0o755)
    words = ["-cp", "a b", MISSING_MODULE, "--add-opens=x", "Main", ""]
    answer = subprocess.run([wrapper, *words], capture_output=True, text=True, check=True)
    assert answer.stdout.split("\n")[:-1] == ["-cp", "a b", "--add-opens=x", "Main", ""]


def test_java_is_found_on_a_machine_without_one(tmp_path: Path) -> None:
    java = machine.find_java({"PATH": str(tmp_path)})
    assert java is not None
    assert java.from_wheel
    assert java.version >= machine.OLDEST_JAVA


@pytest.mark.parametrize(
    ("answer", "version"),
    [('openjdk version "17.0.15" 2025', 17), ('java version "1.8.0_402"', 8), ("nothing", None)],
)
def test_versions_of_java_are_read(tmp_path: Path, answer: str, version: int | None) -> None:
    java = tmp_path / "java"
    java.write_text(f"#!/bin/sh\necho '{answer}' >&2\n")
    java.chmod(0o755)
    assert machine.java_version(java) == version


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'version \"11.0.1\"' >&2\n")
    java.chmod(0o755)
    found_java = machine.find_java({"JAVA_HOME": str(tmp_path), "PATH": str(java.parent)})
    assert found_java is not None
    assert found_java.home != tmp_path

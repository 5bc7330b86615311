"""`slicewise doctor` says what is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from config import doctor
from config.stack import ports

PROJECT = Path(__file__).resolve().parents[2]
SUBJECTS = ["Python", "Java", "Spark", "PostgreSQL", "Redis", "Disk", "Chromium"]


def test_it_looks_at_everything_and_gives_json(capsys: pytest.CaptureFixture[str]) -> None:
    status = doctor.main(["--json"])
    findings = json.loads(capsys.readouterr().out)
    assert [finding["name"] for finding in findings] == SUBJECTS
    missing = [f for f in findings if f["required"] and not f["good"]]
    assert status == bool(missing)


def test_it_needs_neither_django_nor_installed_packages() -> None:
    answer = subprocess.run(
        [sys.executable, "-S", "-m", "config.cli", "doctor"],
        cwd=PROJECT,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1
    assert "MISSING Spark" in answer.stdout
    assert "make setup" in answer.stdout
    assert answer.stderr == ""


def test_a_server_that_is_named_and_does_not_answer_is_reported() -> None:
    (closed,) = ports.pick(1)
    env = {**os.environ, "DATABASE_URL": f"postgres://me:secret@127.0.0.1:{closed}/x"}
    finding = {f.name: f for f in doctor.examine(env)}["PostgreSQL"]
    assert not finding.good
    assert f"127.0.0.1:{closed}" in finding.advice
    assert "secret" not in finding.found + finding.advice


@pytest.mark.parametrize(
    ("master", "said"),
    [
        ("local[2]", ""),
        ("yarn", ""),
        ("mesos://host:5050", "SPARK_MASTER is local[…], spark://host:port, yarn or k8s://"),
        ("spark://127.0.0.1:1", "Nothing answers at spark://127.0.0.1:1"),
        ("spark://somewhere", "Nothing answers at spark://somewhere"),
    ],
)
def test_a_spark_master_that_is_named_is_looked_at(master: str, said: str) -> None:
    finding = {f.name: f for f in doctor.examine({**os.environ, "SPARK_MASTER": master})}[
        "Spark master"
    ]
    assert finding.good is not bool(said)
    assert said in finding.advice

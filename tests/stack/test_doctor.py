"""`slicewise doctor`: findings on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from slicewise_server.stack import doctor, machine, ports, redis_cache, redis_release
from slicewise_server.stack.services import Services

PROJECT = Path(__file__).resolve().parents[2]
SUBJECTS = [
    "Python", "Java", "Spark", "PostgreSQL", "Redis", "User code", "Run limits", "Disk", "Chromium",
]  # fmt: skip


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for Redis, and for its program, longer than a busy machine takes."""
    for module in (redis_cache, redis_release):
        monkeypatch.setattr(module, "_PATIENCE_SECONDS", 60)


def test_it_looks_at_everything_and_gives_json(capsys: pytest.CaptureFixture[str]) -> None:
    status = doctor.main(["--json"])
    findings = json.loads(capsys.readouterr().out)
    assert [finding["name"] for finding in findings] == SUBJECTS
    missing = [f for f in findings if f["required"] and not f["good"]]
    assert status == bool(missing)


def test_it_needs_neither_django_nor_installed_packages() -> None:
    answer = subprocess.run(
        [sys.executable, "-S", "-m", "slicewise_server.stack.cli", "doctor"],
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
    ("master", "advice"),
    [
        ("local[2]", ""),
        ("yarn", ""),
        ("mesos://host:5050", "SPARK_MASTER is local[…], spark://host:port, yarn or k8s://"),
        ("spark://127.0.0.1:1", "Nothing answers at spark://127.0.0.1:1"),
        ("spark://somewhere", "Nothing answers at spark://somewhere"),
    ],
)
def test_a_spark_master_that_is_named_is_looked_at(master: str, advice: str) -> None:
    finding = {f.name: f for f in doctor.examine({**os.environ, "SPARK_MASTER": master})}[
        "Spark master"
    ]
    assert finding.good is not bool(advice)
    assert advice in finding.advice


@pytest.mark.parametrize(
    ("release", "is_mended"),
    [
        (("Redis", 6, 2, 14), False),
        (("Redis", 6, 2, 20), True),
        (("Redis", 7, 0, 15), False),
        (("Redis", 7, 2, 10), False),
        (("Redis", 7, 4, 6), True),
        (("Redis", 8, 0, 3), False),
        (("Redis", 8, 2, 2), True),
        (("Redis", 8, 4, 0), True),
        (("Redis", 5, 0, 14), False),
        (("Valkey", 8, 1, 3), False),
        (("Valkey", 8, 1, 4), True),
        (("Valkey", 9, 0, 0), True),
    ],
)
def test_an_old_redis_is_warned_of(release: tuple[str, int, int, int], is_mended: bool) -> None:
    warning = redis_release.known_holes(redis_release.Release(*release))
    assert bool(warning) is not is_mended
    if warning:
        assert "CVE-2025-49844" in warning


def test_the_release_of_the_embedded_redis_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    env = {name: value for name, value in os.environ.items() if name != "REDIS_URL"}
    finding = {f.name: f for f in doctor.examine(env)}["Redis"]
    assert finding.good
    binary = machine.find_redis(env)
    release = redis_release.of_binary(str(binary))
    assert release is not None
    assert finding.found == f"can be started from {binary}, {release}"
    assert finding.warning == redis_release.known_holes(release)
    doctor._print(finding)
    assert ("Warning: Redis" in capsys.readouterr().out) is bool(finding.warning)


def test_the_release_of_a_redis_that_is_named_is_told(services: Services) -> None:
    finding = {f.name: f for f in doctor.examine(os.environ)}["Redis"]
    embedded = redis_release.of_binary(str(machine.find_redis(os.environ)))
    assert finding.found.endswith(f", {embedded}")


def test_a_redis_that_tells_nothing_is_no_worse() -> None:
    assert redis_release.of_binary("/nowhere/redis-server") is None
    assert redis_release.of_server("redis://127.0.0.1:1/0") is None


def test_it_says_what_limits_runs(tmp_path: Path) -> None:
    names = {"": True, "none": True, str(tmp_path): False, "runs": False}
    for setting, is_good in names.items():
        env = {**os.environ, "SLICEWISE_RUN_CGROUP": setting}
        finding = {f.name: f for f in doctor.examine(env)}["Run limits"]
        assert finding.good is is_good
        if is_good:
            assert "limits each run" in finding.found or "checks its runs" in finding.found
        else:
            assert f"SLICEWISE_RUN_CGROUP is {setting}, and the " in finding.advice

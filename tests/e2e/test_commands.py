"""Commands as people give commands: each in a process of its own, beside a running stack."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from slicewise_server.stack.stack import Stack

SLICEWISE = Path(sys.executable).with_name("slicewise")


# Of pages, workers, tests and Spark: no list beside a stack needs them. `python -m bench --only 20`
# prints the processor time of a list, since no test measures time.
_HEAVY = (
    "assets_app.scheduling", "assets_app.views", "celery", "django.contrib.admin",
    "django.db.migrations", "django.test", "drf_spectacular", "pandas", "py4j", "pyarrow",
    "pyspark", "pytest", "redis", "rest_framework.test", "rest_framework.views",
    "slicewise_server.stack.stack", "structlog", "unittest",
)  # fmt: skip
# Runs the command, and writes to standard error the names among `_HEAVY` that the command imported.
_TOLD = f"""
import sys
from slicewise_server.stack import cli
ended = cli.main(sys.argv[1:])
heavy = [name for name in {_HEAVY} if name in sys.modules]
print("imported:", *heavy, file=sys.stderr)
sys.exit(ended)
"""


class Shell:
    """A shell in which a person types commands."""

    def __init__(self, stack: Stack) -> None:
        self._env = {**stack.services.env, **stack.environment()}

    def output(self, *words: str) -> str:
        """Run a command that has to succeed, and return its output."""
        ended = subprocess.run(
            [SLICEWISE, *words], env=self._env, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def json(self, *words: str) -> Any:
        """Run a command, and return the JSON that the command prints."""
        return json.loads(self.output(*words, "--json"))

    def heavy_imports(self, *words: str) -> list[str]:
        """Run a command that has to succeed; return the modules that no list needs."""
        ended = subprocess.run(
            [sys.executable, "-c", _TOLD, *words],
            env=self._env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout
        told, *names = ended.stderr.splitlines()[-1].split()
        assert told == "imported:"
        return names


@pytest.fixture
def shell(stack: Stack) -> Shell:
    return Shell(stack)


def test_partitions_are_made_and_looked_at(shell: Shell) -> None:
    group = shell.json("assets", "materialize", "told", "--partition", "2024-02-20", "--wait")
    assert (group["states"], group["partition_count"]) == ({"succeeded": 1}, 1)
    assert group["runs_url"].startswith("/api/v1/runs/?group=")
    (run,) = group["runs"]
    assert "trying" in shell.output("runs", "logs", str(run))
    assert shell.json("runs", "show", str(run))["state"] == "succeeded"
    assert "told" in shell.output("runs", "list", "--asset", "told")
    (partition,) = shell.json("partitions", "told", "2024-02-20")
    assert partition["state"] == "materialized"
    assert "told" in shell.output("assets", "list")
    assert shell.json("assets", "show", "told")["name"] == "told"
    assert "only requests and backfills materialize the asset" in shell.output(
        "assets", "schedule", "told"
    )


@pytest.mark.parametrize(
    "words", [("assets", "list"), ("runs", "list"), ("partitions", "told")],
    ids=" ".join,
)  # fmt: skip
def test_a_list_imports_neither_pages_nor_workers_nor_tests(
    shell: Shell, words: tuple[str, ...]
) -> None:
    assert shell.heavy_imports(*words) == []


def test_a_schedule_is_shown(shell: Shell) -> None:
    assert shell.json("assets", "schedule", "pulse")["schedule"]["text"] == "every 0:00:01"
    assert "paused" in shell.output("assets", "schedule", "pulse")


def test_a_backfill_is_made_and_looked_at(shell: Shell) -> None:
    days = ("told", "2024-02-23", "2024-02-24")
    assert "told" in shell.output("backfill", "preview", *days)
    backfill = shell.json("backfill", "create", *days, "--wait")
    assert backfill["state"] == "succeeded"
    assert shell.json("backfill", "show", str(backfill["id"]))["counts"]["succeeded"] == 2
    assert "told" in shell.output("backfill", "list")

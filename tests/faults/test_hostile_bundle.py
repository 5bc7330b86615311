"""Row 18: a bundle that attacks its worker, by messages, links, memory, processes, descriptors and
signals: its run fails, and nothing else is harmed.

`make faults` lets the bundle write for a minute.
"""

import os
import pwd
import shutil
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from slicewise_server.stack.commands import worker
from slicewise_server.stack.demo.client import Client
from slicewise_server.stack.stack import runnable
from tests.e2e.conftest import log_of
from tests.faults.conftest import ROUNDS, Recovered
from tests.faults.folder_listing import listing
from tests.faults.page_visits import Pages
from tests.faults.runs import request_run
from tests.faults.stack_processes import NOBODY, PROJECT, Crew
from tests.reachable_python import reaching_python

pytestmark = [
    pytest.mark.fault(18),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may start processes of another user"),
]

# A runner has some 100 MiB before any code of people runs, and Spark's client more.
ENVIRONMENT = {"SLICEWISE_RUNNER_USER": NOBODY, "SLICEWISE_RUN_MEMORY": "1g"}
# Each by itself, after the messages.
MANNERS = (
    *("gigabyte", "links", "finishes", "forks", "signals", "groups", "descriptors", "memory"),
)
LINKING, LINK = ("links", "finishes"), "hostile-link"
FUZZ_SECONDS = 60.0 if ROUNDS > 1 else 8.0
# `make faults` measures. One round is run on any machine, beside other tests: hostile code stays
# for ten minutes, if the worker does not end the run.
FAILS_WITHIN_SECONDS = 60.0 if ROUNDS > 1 else 240.0
# What servers write all the time, and the folders of the runs themselves.
VOLATILE = ("postgresql", "redis", "spark", "logs", "processes", "running.json", "tmp")


@pytest.fixture
def gateway(crew: Crew, api: Client, tmp_path: Path) -> int:
    """Start a worker in production's form, in which runs have a user of their own; return its
    process.
    """
    # Data of another asset, which lies beside what the hostile code may reach.
    assert crew.await_run(request_run(api, "steady", "2024-02-20", said="before")) == "succeeded"
    crew.halt("worker-scheduled")
    command = runnable(worker("scheduled", "-n", "apart@%h"))
    crew.hire("apart", [*reaching_python(tmp_path), *command], ENVIRONMENT)
    return crew.await_gateway("apart")


@pytest.fixture
def own_folders(crew: Crew) -> Iterator[list[Path]]:
    """Make folders that the hostile code may write, the one in the other, for one round."""
    outer = crew.stack.data / "open to all"
    folders = [outer, outer / "inner"]
    for folder in folders:
        folder.mkdir()
        folder.chmod(0o777)
    yield folders
    shutil.rmtree(outer)


def places(crew: Crew, own_folders: list[Path]) -> dict[str, str]:
    """Return a listing of the data folder, the lake's other assets, the code and the system's
    users, without the links in the code's own folders.
    """
    data = crew.stack.data
    unpacked = [path for path in data.iterdir() if path.name == "bundles"]
    links = [folder / LINK for folder in own_folders]
    volatile = [data / name for name in VOLATILE]
    code = [PROJECT / name for name in ("slicewise", "assets_app", "slicewise_server", "manage.py")]
    facts_by_path = listing(data, without={*unpacked, *volatile, *links})
    facts_by_path |= listing(
        Path("/etc"), without={*Path("/etc").iterdir()} - {Path("/etc/passwd")}
    )
    for folder in code:
        facts_by_path |= listing(folder)
    return {path: facts for path, facts in facts_by_path.items() if "__pycache__" not in path}


def attack(crew: Crew, api: Client, manner: str, **params: object) -> int:
    """Let the bundle attack, and return its run once the run has ended."""
    body = {"manner": manner, **params}
    (run,) = api.post("/assets/hostile/materialize/", params=body)["runs"]
    began = time.monotonic()
    state = crew.await_run(run)
    assert state == "failed", (manner, log_of(api, f"/runs/{run}/"))
    assert time.monotonic() - began < FAILS_WITHIN_SECONDS, manner
    return int(run)


def test_a_hostile_bundle_harms_nothing_but_its_own_run(
    crew: Crew, api: Client, gateway: int, recovered: Recovered, own_folders: list[Path]
) -> None:
    # The bundle is unpacked with the first run.
    assert crew.await_run(request_run(api, "days", "2024-01-31")) == "succeeded"
    before = places(crew, own_folders)
    assert any("/steady/" in path for path in before)
    assert "/etc/passwd" in before
    innocent = partial(request_run, api, "days")
    runs, deadline, seed = [], time.monotonic() + FUZZ_SECONDS, 0
    while time.monotonic() < deadline or seed < 2:
        seed += 1
        neighbour = innocent(f"2024-02-{seed % 28 + 1:02}")
        runs.append(attack(crew, api, "messages", seed=seed))
        assert crew.await_run(neighbour) == "succeeded"
    folders = f"{crew.stack.data}:{PROJECT}:{own_folders[0]}"
    for day, manner in enumerate(MANNERS, start=1):
        neighbour = request_run(api, "days", f"2024-03-{day:02}")
        began = time.monotonic()
        runs.append(attack(crew, api, manner, folders=folders))
        links = [folder / LINK for folder in own_folders]
        assert all(link.is_symlink() for link in links) is (manner in LINKING), manner
        for link in links:
            link.unlink(missing_ok=True)
        recovered(
            f"a hostile bundle ({manner}), until its run has failed", time.monotonic() - began
        )
        assert crew.await_run(neighbour) == "succeeded"

    assert crew.await_gateway("apart") == gateway, "the worker has ended"
    pages, errors = Pages(crew.stack), list[str]()
    for run in runs:
        ((_, outcome, error),) = crew.attempts(run)
        assert outcome == "failed", (run, error)
        errors.append(error)
        assert error.strip(), run
        assert error.splitlines()[0][:30] in pages.text(f"/runs/{run}/")
        assert f"hostile as user {pwd.getpwnam(NOBODY).pw_uid}\n" in log_of(api, f"/runs/{run}/")
    assert "and its limit is 1 GiB (setting SLICEWISE_RUN_MEMORY" in errors[-1]
    after = places(crew, own_folders)
    changed = sorted(path for path in before | after if before.get(path) != after.get(path))
    assert changed == []
    crew.assert_sound()

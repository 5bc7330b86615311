"""Row 11: a disk that is full while data is put in place: its page says so, the rest goes on."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from config.demo.client import Client
from tests.faults.conftest import Recovered
from tests.faults.crew import Crew, until
from tests.faults.fall import arm, has_fallen
from tests.faults.pages import Pages
from tests.faults.test_named_moments import BRIEF, asked

pytestmark = pytest.mark.fault(11)

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
_ROOM = "size=4m,nr_inodes=300"
_KEY = "day=2024-01-01 airport=JFK"


@pytest.fixture
def disk(lake: Path) -> Iterator[Path]:
    """A small disk on which some assets' data lies."""
    place = lake / "faults" / "small"
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", _ROOM, "tmpfs", place], check=True)
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


@pytest.fixture
def pages(crew: Crew) -> Pages:
    return Pages(crew.stack)


@AS_ROOT
def test_a_disk_that_is_full_while_publishing_is_waited_for(
    crew: Crew,
    api: Client,
    pages: Pages,
    disk: Path,
    tmp_path: Path,
    recovered: Recovered,
) -> None:
    crew.halt("worker-scheduled")
    folder = tmp_path / "moments"
    run = asked(api, "nested", _KEY, said="new")
    arm(folder, run, "after:running-publishing", signal.SIGSTOP)
    crew.hire_frail("frail", folder, "scheduled", env=BRIEF)
    until(lambda: has_fallen(folder, run), "all is staged")
    stopped = crew.await_gateway("frail")
    fill(disk / "filling")
    crew.thaw(stopped)

    until(lambda: "No space left on device" in pages.text(f"/runs/{run}/"), "its page says so")
    assert crew.run_state(run) == "publishing"
    assert crew.await_run(asked(api, "steady", "2024-02-11", seconds=0.1)) == "succeeded"

    empty(disk / "filling")
    emptied_at = time.monotonic()
    assert crew.await_run(run) == "succeeded"
    recovered("a disk full while publishing, once there is room", time.monotonic() - emptied_at)
    assert list((disk / "nested").glob("day=2024-01-01/airport=JFK/*.parquet"))
    crew.assert_sound()


def fill(folder: Path) -> None:
    """Take all that is left of a disk's room for names."""
    folder.mkdir()
    with suppress(OSError):
        for number in range(10**6):
            (folder / str(number)).touch()


def empty(folder: Path) -> None:
    """Give it back."""
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()

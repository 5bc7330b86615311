"""Row 11: a full disk, and definition files that never end, end the process, print or fork without
measure: the page shows a clear error, and other work goes on.

tests/catalogue/test_loading.py shows the loader's treatment of such files in detail.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from slicewise_server.stack import machine
from slicewise_server.stack.demo.client import Client
from tests.e2e.conftest import log_of
from tests.faults.conftest import Recovered
from tests.faults.crash_points import ANY, arm, has_fallen
from tests.faults.page_visits import Pages
from tests.faults.runs import request_run
from tests.faults.stack_processes import PROJECT, SHORT_LEASE, Crew, until
from tests.processes import is_alive

pytestmark = pytest.mark.fault(11)

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
_ROOM = "size=4m,nr_inodes=300"
_KEY = "day=2024-01-01 airport=JFK"


@pytest.fixture
def disk(lake: Path) -> Iterator[Path]:
    """Return a small disk that holds some assets' data."""
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
    arm(folder, ANY, "after:running-publishing", signal.SIGSTOP)
    crew.hire_frail("frail", folder, "scheduled", env=SHORT_LEASE)
    # Before it stops: a worker that is stopped counts as away a few seconds later.
    stopped = crew.await_gateway("frail")
    run = request_run(api, "nested", _KEY, said="new")
    until(lambda: has_fallen(folder, ANY), "all is staged")
    fill(disk / "filling")
    crew.thaw(stopped)

    until(lambda: "No space left on device" in pages.text(f"/runs/{run}/"), "its page says so")
    assert crew.run_state(run) == "publishing"
    assert crew.await_run(request_run(api, "steady", "2024-02-11", seconds=0.1)) == "succeeded"

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
    """Free the disk."""
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


@AS_ROOT
def test_a_disk_that_is_full_while_writing_fails_the_run_and_keeps_the_old_data(
    crew: Crew, api: Client, pages: Pages, disk: Path
) -> None:
    day = "2024-01-01"
    assert crew.await_run(request_run(api, "large", day, rows=1)) == "succeeded"
    before = [file.name for file in (disk / "large" / f"partition={day}").iterdir()]
    run = request_run(api, "large", day, rows=1_000_000)
    assert crew.await_run(run) == "failed"
    assert "No space left on device" in pages.text(f"/runs/{run}/")
    assert [file.name for file in (disk / "large" / f"partition={day}").iterdir()] == before
    until(lambda: not list((disk / "large").glob("_slicewise*")), "what was staged is removed")
    assert crew.await_run(request_run(api, "large", day, rows=2)) == "succeeded"


def test_code_that_prints_or_forks_without_measure_harms_its_own_run_only(
    crew: Crew, api: Client, pages: Pages
) -> None:
    worker = crew.pid("worker-scheduled")
    (talking,) = api.post("/assets/talkative/materialize/")["runs"]
    (forking,) = api.post("/assets/multiplying/materialize/")["runs"]
    assert crew.await_run(talking) == "succeeded"
    log = log_of(api, f"/runs/{talking}/")
    assert "[the log is cut here: its limit is 10485760 bytes]" in log
    assert len(log) < 11 * 1024**2
    assert resident_bytes(worker) < 1024**3
    assert crew.await_run(forking) == "failed"
    assert "ended by itself with status 3" in pages.text(f"/runs/{forking}/")
    until(lambda: sleepers() == [], "nothing of it goes on")
    assert crew.pid("worker-scheduled") == worker


def sleepers() -> list[int]:
    """Return the processes that the fork bomb has started."""
    pids = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if process.joinpath("cmdline").read_bytes() == b"sleep\x00604\x00":
                pids.append(int(process.name))
    return [pid for pid in pids if is_alive(pid)]


def resident_bytes(pid: int) -> int:
    """Return the memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


GOOD = "from slicewise import asset\n\n\n@asset()\ndef peaceful(): ...\n"
HOSTILE = {
    "while True: pass": "Its files were not loaded within 8 s (setting LOADER_TIMEOUT_SECONDS).",
    "import os\nos._exit(7)": "The loader ended with status 7.",
    "import sys\nfor _ in range(1024): sys.stderr.write('x' * 1_048_576)": "File too large",
    "import os, subprocess\nfor _ in range(5): os.fork()\n"
    "subprocess.Popen(['sleep', '604'])\nos._exit(9)": "The loader ended with status 9.",
}


def test_a_hostile_definition_file_is_told_of_on_its_page_and_the_rest_goes_on(
    crew: Crew, api: Client, pages: Pages
) -> None:
    folder = crew.stack.data / "hostile"
    (folder / "peaceful.py").write_text(GOOD)
    assert sync(crew) == 0
    try:
        for text, sentence in HOSTILE.items():
            (folder / "hostile.py").write_text(text)
            assert sync(crew, 8 if text.startswith("while") else 60) == 1, text
            assert sentence in pages.text("/bundles/"), text
            assert api.get("/assets/peaceful/")["active"] is True
        until(lambda: sleepers() == [], "nothing of it goes on")
        (run,) = api.post("/assets/peaceful/materialize/")["runs"]
        assert crew.await_run(run) == "succeeded"
    finally:
        (folder / "hostile.py").unlink(missing_ok=True)
    assert sync(crew) == 0
    assert "Its files were not loaded" not in pages.text("/bundles/")


def sync(crew: Crew, seconds: int = 60) -> int:
    """Return the exit code of a sync of the bundle, whose files may take so long."""
    result = subprocess.run(
        [machine.python(), str(PROJECT / "manage.py"), "sync", "hostile"],
        env={**crew.env(), "LOADER_TIMEOUT_SECONDS": str(seconds)},
        capture_output=True,
        check=False,
    )
    return result.returncode

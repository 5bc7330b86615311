"""Row 7: the Spark Connect server is killed, or stopped in good order, during a run of a range."""

import signal
import threading
import time
from pathlib import Path

import pytest
from pyarrow import parquet

from slicewise_server.stack.demo.client import Client
from tests.faults.conftest import Recovered
from tests.faults.marks import assert_never_twice_at_once, marks_of
from tests.faults.runs import request_run
from tests.faults.stack_processes import Crew, until
from tests.spark_jobs import jobs_of

pytestmark = pytest.mark.fault(7)

DAYS = [f"2024-01-{day:02}" for day in range(1, 6)]
SELECTION = f"{DAYS[0]}..{DAYS[-1]}"


class Reader(threading.Thread):
    """A reader that reads all days again and again, and keeps the results."""

    def __init__(self, root: Path) -> None:
        super().__init__(daemon=True)
        self._root = root
        self._is_over = threading.Event()
        self.seen: list[list[str]] = []
        self.failures: list[str] = []

    def run(self) -> None:
        """Read until `stop`."""
        while not self._is_over.wait(0.05):
            try:
                self.seen.append([self._text_of(day) for day in DAYS])
            except Exception as error:
                self.failures.append(repr(error))

    def stop(self) -> None:
        """Stop, and wait for the end."""
        self._is_over.set()
        self.join()

    def _text_of(self, day: str) -> str:
        """Return the text of a day.

        A file may go between two looks at a folder, so that the folder seems to lack the file or to
        be empty: both looks are repeated.
        """
        folder = self._root / f"partition={day}"
        for _ in range(3):
            try:
                table = parquet.read_table(folder)
            except FileNotFoundError:
                continue
            if table.column_names:
                (row,) = table.to_pylist()
                return str(row["said"])
        raise FileNotFoundError(folder)


@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.rounds)],
    ids=lambda number: number.name,
)
def test_a_range_is_made_on_the_next_server_and_old_data_stays_readable(
    crew: Crew, api: Client, lake: Path, recovered: Recovered, number: signal.Signals
) -> None:
    assert crew.await_run(request_run(api, "ranged", SELECTION, said="old")) == "succeeded"
    before = crew.materializations("ranged")
    reader = Reader(lake / "faults" / "ranged")
    reader.start()
    run = request_run(api, "ranged", SELECTION, said="new", seconds=120)
    until(lambda: jobs_of(crew.stack, run, 1), "Spark is at work")
    crew.kill("spark", number)
    killed_at = time.monotonic()

    assert crew.await_run(run, seconds=240) == "succeeded", crew.rows(_SAID, run)
    recovered(
        f"{number.name} to the Spark Connect server in a run of a range",
        time.monotonic() - killed_at,
    )
    until(lambda: reader.seen[-1] == ["new"] * len(DAYS), "the new data is read")
    reader.stop()

    assert reader.failures == []
    # Each day old or new, and never old again.
    for day in range(len(DAYS)):
        texts = [texts_by_day[day] for texts_by_day in reader.seen]
        assert texts == sorted(texts, reverse=True)
        assert set(texts) == {"old", "new"}
    attempts = crew.attempts(run)
    assert [outcome for _, outcome, _ in attempts][-1] == "succeeded"
    assert {outcome for _, outcome, _ in attempts[:-1]} == {"failed"}
    assert attempts[0][2].startswith("Spark was lost during the run; such a run is tried again. ")
    assert crew.rows(_FAILURES, run) == [(len(attempts) - 1, 0)]
    assert_never_twice_at_once(marks_of(lake, run))
    after = crew.materializations("ranged")
    assert after == {day: (version + 1, count + 1) for day, (version, count) in before.items()}
    crew.assert_sound()


_SAID = "SELECT outcome, error, traceback FROM assets_app_runattempt WHERE run_id = %s"
_FAILURES = "SELECT platform_failures, code_failures FROM assets_app_run WHERE id = %s"

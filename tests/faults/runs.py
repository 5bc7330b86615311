"""Runs of the assets of faults: requests, and checks of the data that the runs leave."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import parquet

from slicewise_server.stack.demo.client import Client
from tests.faults.marks import marks_of
from tests.faults.stack_processes import Crew

KEYS = """
SELECT partition.key FROM assets_app_runpartition AS run_partition
JOIN assets_app_assetpartition AS partition ON partition.id = run_partition.partition_id
WHERE run_partition.run_id = %s ORDER BY partition.key
"""
WINNER = """
SELECT number, replace(spark_session_id::text, '-', '') FROM assets_app_runattempt
WHERE run_id = %s AND outcome = 'succeeded'
"""


@dataclass(frozen=True)
class Case:
    """A run whose worker is killed at a moment, and the expected end of the run."""

    asset: str
    selection: str
    moment: str
    end: str = "succeeded"

    @property
    def params(self) -> dict[str, Any]:
        """Work that waits to be canceled does not end by itself."""
        if self.asset == "failing":
            return {}
        return {"said": self.moment, "seconds": 600 if self.end == "canceled" else 0.2}


def request_run(api: Client, asset: str, selection: str, **params: Any) -> int:
    """Request a run, and return the number of the request's only run."""
    body = {"selection": selection, "strategy": "range", "params": params}
    (run,) = api.post(f"/assets/{asset}/materialize/", **body)["runs"]
    return int(run)


def assert_made(crew: Crew, run: int, case: Case, before: dict[str, tuple[int, int]]) -> None:
    """Require one more version and materialization of each partition that was made, and no more of
    others.
    """
    added, now = int(case.end == "succeeded"), crew.materializations("steady")
    for (day,) in crew.rows(KEYS, run):
        version, count = before.get(day, (0, 0))
        assert now.get(day, (0, 0)) == (version + added, count + added), (case, day)


def assert_published(crew: Crew, lake: Path, run: int, case: Case) -> None:
    """Require that the data in the lake is the data of the attempt on record."""
    ((winner, session),) = crew.rows(WINNER, run)
    days = crew.rows(KEYS, run)
    assert len(days) == len(case.selection.split(".."))
    for (day,) in days:
        place = lake / "faults" / "steady" / f"partition={day}"
        rows = parquet.read_table(place, columns=["said", "n"]).to_pylist()
        assert rows == [{"said": case.moment, "n": winner}], case
        (marker,) = place.glob("_slicewise-*")
        assert marker.name == f"_slicewise-{run}-{winner}-{session[:12]}", case


def steady_texts(lake: Path, day: str) -> list[str]:
    table = parquet.read_table(lake / "faults" / "steady" / f"partition={day}", columns=["said"])
    return [str(row["said"]) for row in table.to_pylist()]


def running_runs(crew: Crew, lake: Path, group: int, number: int) -> list[int]:
    """Return the runs of a request whose code runs, once there are so many; no runs before."""
    runs = crew.rows(
        "SELECT id FROM assets_app_run WHERE group_id = %s AND state = 'running'", group
    )
    working = [run for (run,) in runs if marks_of(lake, run)]
    return working if len(working) == number else []

"""Runs that a worker has made by Spark applications of their own."""

from pathlib import Path

from pyarrow import parquet

from slicewise_server.stack.demo.client import Client
from slicewise_server.stack.stack import Stack
from tests.e2e.conftest import ended, eventually, log_of, run_of
from tests.processes import is_alive


def test_a_run_is_made_by_its_own_application_and_another_is_canceled_with_its_own(
    api: Client, stack: Stack, lake: Path
) -> None:
    idle, alone = run_of(api, "idles"), run_of(api, "alone", selection="2024-01-01..2024-01-02")
    number = alone.rstrip("/").rpartition("/")[2]
    assert ended(api, alone)["state"] == "succeeded", log_of(api, alone)
    (attempt,) = api.get(alone)["attempts"]
    assert attempt["engine"] == "submit"
    assert attempt["application_id"].startswith("local-")
    assert attempt["application_ui"].startswith("http://")
    assert f"of slicewise-run-{number}-1" in log_of(api, alone)
    assert api.get("/assets/alone/")["counts"] == {"materialized": 2}
    files = list((lake / "trials" / "alone").glob("partition=*/*.parquet"))
    assert {file.parent.name for file in files} == {"partition=2024-01-01", "partition=2024-01-02"}
    assert sum(parquet.read_metadata(file).num_rows for file in files) == 4

    driver = int(eventually(lambda: log_of(api, idle).partition("driver ")[2].split(" ")[0]))
    assert is_alive(driver)
    api.post(f"{idle}cancel/")
    assert ended(api, idle)["state"] == "canceled"
    # What was killed takes a moment to end, and longer where the machine is busy.
    eventually(lambda: not is_alive(driver))
    eventually(lambda: not list((stack.data / "submitted").iterdir()))

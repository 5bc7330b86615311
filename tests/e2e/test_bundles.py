"""A definition file is changed, broken and mended while the stack runs."""

from pathlib import Path

import pytest

from slicewise_server.stack.demo.client import Client
from slicewise_server.stack.stack import Stack
from tests.e2e.conftest import ended, eventually, log_of, run_of

GOOD = '''
from slicewise import asset

@asset()
def greeting():
    """Says hello."""
    print("hello from version {version}")
'''
TIDES = '''
import time
from pathlib import Path

from slicewise import PartitionByInterval, asset

@asset(partition=PartitionByInterval("@daily", start="2024-01-01", end="{end}"))
def tides(context):
    """Wait from the third on until the test has changed the definition."""
    print("tide of", context["partition"], "by version {version}")
    turned = Path("{turned}")
    while str(context["partition"]) > "2024-01-02" and not turned.exists():
        time.sleep(0.1)
'''
BROKEN = GOOD.format(version=3) + "\nthis is no Python\n"


@pytest.fixture
def file(stack: Stack) -> Path:
    return stack.data / "trials" / "greetings.py"


def test_a_broken_file_leaves_the_last_good_version_in_force(
    stack: Stack, api: Client, file: Path
) -> None:
    file.write_text(GOOD.format(version=1))
    stack.manage("sync")
    first = run_of(api, "greeting")
    assert ended(api, first)["state"] == "succeeded"
    assert "hello from version 1" in log_of(api, first)

    file.write_text(BROKEN)
    result = stack.manage("sync", check=False)
    assert result.returncode == 1
    assert "greetings.py" in result.stdout + result.stderr
    assert api.get("/assets/greeting/")["active"] is True
    again = run_of(api, "greeting")
    assert ended(api, again)["state"] == "succeeded"
    assert "hello from version 1" in log_of(api, again)

    file.write_text(GOOD.format(version=4))
    stack.manage("sync")
    mended = run_of(api, "greeting")
    assert ended(api, mended)["state"] == "succeeded"
    assert "hello from version 4" in log_of(api, mended)

    file.unlink()
    stack.manage("sync")
    assert api.get("/assets/greeting/")["active"] is False


def test_a_backfill_goes_on_with_its_code_and_without_partitions_that_are_gone(
    stack: Stack, api: Client, file: Path
) -> None:
    # Beside the lake, which exists only once an asset has been written.
    turned = stack.data / "turned"
    file.write_text(TIDES.format(version=1, end="2024-02-20", turned=turned))
    stack.manage("sync")
    backfill = api.post(
        "/backfills/", asset="tides", selection="2024-01-01..2024-02-19", max_active_runs=2
    )
    address = f"/backfills/{backfill['id']}/"
    eventually(lambda: api.get(address)["counts"]["succeeded"] == 2)
    file.write_text(TIDES.format(version=2, end="2024-02-15", turned=turned))
    stack.manage("sync")
    turned.touch()

    ended_backfill = ended(api, address)
    assert (ended_backfill["state"], ended_backfill["counts"]["succeeded"]) == (
        "partially_failed",
        45,
    )
    skipped = api.every(f"{address}partitions/?state=skipped")
    assert [(partition["key"], partition["reason"]) for partition in skipped] == [
        (f"2024-02-{day}", "no_such_partition") for day in range(15, 20)
    ]
    succeeded = api.every(f"{address}partitions/?state=succeeded")
    last = max(succeeded, key=lambda partition: partition["key"])
    assert "tide of 2024-02-14 by version 1" in log_of(api, f"/runs/{last['run']}/")
    newest = run_of(api, "tides", selection="2024-02-14")
    assert ended(api, newest)["state"] == "succeeded"
    assert "tide of 2024-02-14 by version 2" in log_of(api, newest)
    file.unlink()
    stack.manage("sync")

"""Runs that read partitions whose files are lost, on a real Spark Connect server."""

from typing import Any

import pytest

from slicewise.io.base import Measured
from slicewise.io.recorded import Difference, PartitionRecord, repair_advice
from tests.runtime.definition_texts import HOURS_BY_DAY
from tests.runtime.runs import Runs

READING = """
    @asset()
    def total(hours):
        print(hours.read().count())

    @asset(inlet_validations={"hours": [AssetValidation.row_count(min=1)]}, retries=5)
    def validated(hours):
        print("not reached")
"""
KEYS = ["2013-01-01", "2013-01-02"]


def test_a_run_fails_by_the_data_that_it_reads_where_files_are_lost(spark_runs: Runs) -> None:
    spark_runs.define(HOURS_BY_DAY + READING)
    outcome = spark_runs.make("hours", KEYS)
    sizes = {key: staged["bytes"] for key, staged in outcome.staged.items()}

    def answer(question: dict[str, Any]) -> dict[str, Any]:
        assert (question["question"], question["asset"]) == ("recorded", "hours")
        return {"recorded": {key: [24, sizes[key], False] for key in question["keys"]}}

    spark_runs.answer = answer
    request = spark_runs.request("total", upstream={"hours": KEYS})
    upstreams = {"hours": {**request["upstreams"]["hours"], "is_recorded": True}}
    assert spark_runs.make("total", upstreams=upstreams).log == "48\n"
    folder = spark_runs.lake / "hours" / f"partition={KEYS[1]}"
    for file in folder.glob("*.parquet"):
        file.unlink()
    failure = spark_runs.run("total", upstreams=upstreams).failure
    assert failure["kind"] == "data"
    assert "1 partition of hours that this run reads is not as recorded" in failure["error"]
    assert f"{KEYS[1]} (no data)" in failure["error"]
    assert "slicewise partitions verify hours" in failure["error"]
    validated = spark_runs.run("validated", upstreams=upstreams).failure
    assert (validated["kind"], validated["error"]) == ("data", failure["error"])


@pytest.mark.parametrize(
    ("record", "advice"),
    [
        (PartitionRecord(bytes=9), "Materialize the data again"),
        (PartitionRecord(bytes=9, files=2), "Restore the lost data, or remove the rest"),
        (PartitionRecord(rows=9, is_least=True), "Restore the lost data, or remove the rest"),
    ],
)
def test_the_advice_for_appended_data_is_not_to_append_again(
    record: PartitionRecord, advice: str
) -> None:
    lost = Difference(key="2013-01-01", path="", recorded=record, actual=Measured(bytes=3, rows=3))
    assert repair_advice([lost]).startswith(advice)

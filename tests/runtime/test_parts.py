"""Runs that fail in part: the runner's messages, with ``on_partial="publish"`` and without."""

from typing import Any

import pytest

from slicewise import Asset, DefinitionError, PartitionByInterval, asset
from tests.runtime.runs import Outcome, Runs, unmade_errors

DAYS = [f"2024-01-0{day}" for day in range(1, 5)]
DEFINED = """
    DAYS = PartitionByInterval("@daily", start="2024-01-01", end="2024-01-05")
    @asset(uri=f"{LAKE}/days", partition=DAYS, strategy="range", on_partial="%s",
           params={"bad": 5, "raise_at": 9, "outside": False},
           outlet_validations=[AssetValidation.row_count(min=1),
                               AssetValidation.accepted_values("n", [0, 1])])
    def days(self, spark, context):
        params = context["params"]
        for place, key in enumerate(context["partition"].keys):
            if place == params["raise_at"]:
                raise RuntimeError("the source went away")
            number = 7 if place == params["bad"] else 1
            frame = spark.sql(f"SELECT {number} AS n")
            if params["outside"] and place == 2:
                frame = spark.sql("SELECT 1 AS n, '2030-01-01' AS partition")
            self.write(frame, partition=key)
"""


def run(spark_runs: Runs, on_partial: str = "publish", **params: Any) -> Outcome:
    spark_runs.define(DEFINED % on_partial)
    params = {"bad": 5, "raise_at": 9, "outside": False} | params
    return spark_runs.run("days", DAYS, params=params)


def test_partitions_written_before_the_function_raised_are_kept(spark_runs: Runs) -> None:
    outcome = run(spark_runs, raise_at=2)
    assert list(outcome.staged) == DAYS[:2]
    assert outcome.failure["error"] == "RuntimeError: the source went away"
    assert "raise RuntimeError" in outcome.failure["traceback"]
    assert unmade_errors(outcome) == dict.fromkeys(
        DAYS[2:], "It was not written: RuntimeError: the source went away"
    )
    assert outcome.types[-2:] == ["failed", "exited"]


def test_a_partition_that_does_not_pass_is_left_out_and_the_rest_is_kept(spark_runs: Runs) -> None:
    outcome = run(spark_runs, bad=1)
    assert list(outcome.staged) == [DAYS[0], DAYS[2], DAYS[3]]
    assert list(unmade_errors(outcome)) == [DAYS[1]]
    assert "does not pass accepted_values" in unmade_errors(outcome)[DAYS[1]]
    assert outcome.failure["kind"] == "code"
    assert "days does not pass" in outcome.failure["error"]


def test_both_at_once_leave_what_is_written_and_passes(spark_runs: Runs) -> None:
    outcome = run(spark_runs, bad=0, raise_at=3)
    assert list(outcome.staged) == DAYS[1:3]
    assert set(unmade_errors(outcome)) == {DAYS[0], DAYS[3]}
    assert "the source went away" in outcome.failure["error"]


@pytest.mark.parametrize(
    ("on_partial", "params"),
    [
        ("discard", {"raise_at": 2}),
        ("discard", {"bad": 1}),
        ("publish", {"outside": True}),
        ("publish", {"raise_at": 0}),
    ],
)
def test_otherwise_nothing_is_kept(
    spark_runs: Runs, on_partial: str, params: dict[str, Any]
) -> None:
    outcome = run(spark_runs, on_partial, **params)
    assert (outcome.staged, unmade_errors(outcome)) == ({}, {})
    assert outcome.types[-2:] == ["failed", "exited"]


def test_partitions_that_pass_alone_and_fail_together_are_not_blamed(spark_runs: Runs) -> None:
    spark_runs.define("""
        DAYS = PartitionByInterval("@daily", start="2024-01-01", end="2024-01-05")
        @asset(uri=f"{LAKE}/days", partition=DAYS, strategy="range", on_partial="publish",
               outlet_validations=[AssetValidation.unique("id")])
        def days(self, spark, context):
            for key in context["partition"].keys:
                self.write(spark.range(2), partition=key)
    """)
    outcome = spark_runs.run("days", DAYS)
    assert (outcome.staged, unmade_errors(outcome)) == ({}, {})
    assert "unique" in outcome.failure["error"]


def test_several_outlets_are_made_all_or_none() -> None:
    daily = PartitionByInterval("@daily")
    with pytest.raises(DefinitionError, match="a run publishes all outlets or none"):

        @asset.multi(outlets=[Asset("a"), Asset("b")], partition=daily, on_partial="publish")
        def both() -> None: ...

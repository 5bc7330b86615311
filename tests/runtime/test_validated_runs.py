"""Validations in runs, on a real Spark Connect server: before the function, and after it."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from pyarrow import parquet

from tests.runtime.runs import Outcome, Runs, clock_ahead_by

SALES = """
    DAYS = PartitionByInterval("@daily", start="2024-01-01", end="2024-01-05")

    @asset(uri=f"{LAKE}/raw", partition=DAYS, strategy="range")
    def raw(spark):
        return spark.sql("SELECT * FROM VALUES ('mitte', 5, '2024-01-01'),"
            " (NULL, 6, '2024-01-02'), ('wedding', NULL, '2024-01-02')"
            " AS t(shop, amount, partition)")
"""
DAYS = ["2024-01-01", "2024-01-02"]


def validated(outcome: Outcome) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Return the run's validation results, by time, asset and name."""
    return {
        (message["when"], message["asset"], result["name"]): result
        for message in outcome.of_type("validated")
        for result in message["results"]
    }


def passed(outcome: Outcome) -> dict[str, bool]:
    return {name: result["passed"] for (_, _, name), result in validated(outcome).items()}


def test_inputs_and_outputs_of_a_run_are_validated(spark_runs: Runs) -> None:
    spark_runs.define(f"""{SALES}
    @validation
    def cheap(frame):
        "Nothing costs more than ten."
        assert frame.where("amount > 10").count() == 0

    @asset(uri=f"{{LAKE}}/sales", partition=DAYS, strategy="range",
           inlet_validations={{raw: [AssetValidation.row_count(min=1), cheap]}},
           outlet_validations=[AssetValidation.not_null("shop", severity="warn"),
                               AssetValidation.unique("shop", "amount")])
    def sales(raw):
        print("the function runs")
        return raw.read()
    """)
    spark_runs.make("raw", DAYS)
    outcome = spark_runs.make("sales", DAYS, upstream={"raw": DAYS})
    results = validated(outcome)
    assert {key: result["passed"] for key, result in results.items()} == {
        ("inlet", "raw", "row_count"): True,
        ("inlet", "raw", "cheap"): True,
        ("outlet", "sales", "not_null(shop)"): False,
        ("outlet", "sales", "unique(shop, amount)"): True,
    }
    assert results["inlet", "raw", "cheap"]["description"] == "Nothing costs more than ten."
    warned = results["outlet", "sales", "not_null(shop)"]
    assert (warned["severity"], warned["evaluated"]) == ("warn", True)
    assert warned["message"] == "1 of 3 rows hold a null: 1 in 'shop'."
    assert warned["observed"] == {"rows": 3, "failing": 1, "nulls": {"shop": 1}}
    # Whoever looks at the log alone is told, too.
    assert "sales does not pass not_null(shop): 1 of 3 rows" in outcome.log
    assert outcome.log.index("the function runs") < outcome.log.index("does not pass")
    assert outcome.types.index("staged") > outcome.types.index("validated")


def test_an_inlet_that_fails_stops_the_run_before_anything_is_written(spark_runs: Runs) -> None:
    spark_runs.define(f"""{SALES}
    @asset(uri=f"{{LAKE}}/sales", partition=DAYS, retries=3,
           inlet_validations={{raw: [AssetValidation.not_null("shop"),
                                     AssetValidation.not_null("amount"),
                                     AssetValidation.row_count(min=3, severity="warn")]}})
    def sales(raw):
        print("the function runs")
        return raw.read()
    """)
    spark_runs.make("raw", DAYS)
    stopped = spark_runs.run("sales", ["2024-01-02"], upstream={"raw": ["2024-01-02"]})
    assert stopped.failure["kind"] == "code"
    assert stopped.failure["traceback"] == ""
    assert stopped.failure["error"] == (
        "raw does not pass not_null(shop): 1 of 2 rows hold a null: 1 in 'shop'. (And 1 more.)"
    )
    assert list(passed(stopped).values()) == [False, False, False]
    assert "the function runs" not in stopped.log
    assert not (spark_runs.lake / "sales").exists()
    # Only what the run reads is asked: the first day has no null, and one row, which is a warning.
    fine = spark_runs.make("sales", ["2024-01-01"], upstream={"raw": ["2024-01-01"]})
    assert list(passed(fine).values()) == [True, True, False]


def test_old_data_stays_when_the_new_does_not_pass(spark_runs: Runs) -> None:
    spark_runs.define("""
        @asset(uri=f"{LAKE}/kept", params={"rows": 2},
               outlet_validations=[AssetValidation.row_count(min=2)])
        def kept(spark, context):
            return spark.range(context["params"]["rows"])
    """)
    spark_runs.make("kept", params={"rows": 3})
    failed = spark_runs.run("kept", params={"rows": 1})
    assert failed.failure["error"] == (
        "kept does not pass row_count: The data has 1 row instead of at least 2 rows."
    )
    assert "staged" not in failed.types
    files = (spark_runs.lake / "kept").glob("*.parquet")
    assert sum(parquet.read_metadata(file).num_rows for file in files) == 3


def test_all_rules_and_all_partitions_are_one_job(spark_runs: Runs) -> None:
    spark_runs.define("""
        from pyspark.sql.connect.dataframe import DataFrame
        collect = DataFrame.collect
        def counting(self):
            print("asked")
            return collect(self)
        DataFrame.collect = counting

        DAYS = PartitionByInterval("@daily", start="2024-01-01", end="2024-01-05")
        @asset(uri=f"{LAKE}/days", partition=DAYS, strategy="range",
               outlet_validations=[AssetValidation.has_columns("id", "partition"),
                                   AssetValidation.not_null("id", "partition"),
                                   AssetValidation.row_count(min=4, max=4),
                                   AssetValidation.accepted_values("id", range(4)),
                                   AssetValidation.matches("partition", r"2024-01-0[1-4]")])
        def days(spark):
            return spark.sql("SELECT id, concat('2024-01-0', id + 1) AS partition FROM range(4)")
    """)
    outcome = spark_runs.make("days", [f"2024-01-0{day}" for day in range(1, 5)])
    assert set(passed(outcome).values()) == {True}
    assert outcome.log.count("asked") == 1


def test_assets_made_together_are_asked_each_and_staged_all_or_none(spark_runs: Runs) -> None:
    spark_runs.define("""
        few = Asset("few", uri=f"{LAKE}/a/few", outlet_validations=[
            AssetValidation.row_count(max=2)])
        any_number = Asset("any_number", uri=f"{LAKE}/b/any", outlet_validations=[
            AssetValidation.unique("id")])
        @asset.multi(outlets=[any_number, few], params={"rows": 2})
        def both(spark, context):
            frame = spark.range(context["params"]["rows"])
            return {"few": frame, "any_number": frame}
    """)
    outcome = spark_runs.make("both", params={"rows": 2})
    assert {(asset, name) for _, asset, name in validated(outcome)} == {
        ("few", "row_count"),
        ("any_number", "unique(id)"),
    }
    failed = spark_runs.run("both", params={"rows": 3})
    assert failed.failure["error"].startswith("few does not pass row_count: The data has 3 rows")
    assert passed(failed) == {"row_count": False, "unique(id)": True}
    assert "staged" not in failed.types


def test_each_partition_that_a_run_found_is_asked_and_none_where_it_found_none(
    spark_runs: Runs,
) -> None:
    spark_runs.define("""
        @asset(uri=f"{LAKE}/customers", partition=PartitionAtRuntime(name="customers"),
               outlet_validations=[AssetValidation.row_count(min=3)])
        def found(self, spark, context):
            for name in context["params"]["names"]:
                self.write(spark.range(2), partition=name)
    """)
    two = spark_runs.run("found", [], params={"names": ["ada", "bob"]})
    assert two.types[-2:] == ["finished", "exited"], two.messages
    (result,) = validated(two).values()
    assert result["message"] == "The data has 4 rows."
    empty = spark_runs.run("found", [], params={"names": []})
    assert empty.types[-2:] == ["finished", "exited"], empty.messages
    assert validated(empty) == {}


def test_data_of_another_program_is_held_to_its_declared_validations(spark_runs: Runs) -> None:
    spark_runs.define(
        """
        outside = Asset("outside", uri=f"{LAKE}/outside",
                        outlet_validations=[AssetValidation.row_count(min=5)])
        """,
        file="others.py",
    )
    spark_runs.define("""
        @asset(uri=f"{LAKE}/outside")
        def writes(spark):
            return spark.range(4)

        @asset(inlet_validations=[AssetValidation.has_columns("id")])
        def reads(outside):
            print("the function runs")
    """)
    spark_runs.make("writes")
    request = spark_runs.request("writes")
    upstream = {"uri": request["uri"], "partition": None, "partitions": [""], "missing": []}
    unseen = spark_runs.make("reads", upstreams={"outside": upstream})
    assert passed(unseen) == {"has_columns(id)": True}
    declared = upstream | {"declared_in": "others.py"}
    stopped = spark_runs.run("reads", upstreams={"outside": declared})
    assert stopped.failure["error"].startswith(
        "outside does not pass row_count: The data has 4 rows"
    )
    assert passed(stopped) == {"row_count": False, "has_columns(id)": True}


def test_freshness_is_that_of_what_is_read_and_needs_no_data(runs: Runs) -> None:
    runs.define("""
        from datetime import timedelta
        elsewhere = Asset("elsewhere", uri="s3://bucket/x")
        @asset(inlet_validations={"elsewhere": [AssetValidation.fresh_within(timedelta(hours=1))]})
        def reads(elsewhere): pass

        @asset(inlet_validations={"elsewhere": [AssetValidation.row_count(min=1)]})
        def counts(elsewhere): pass
    """)
    upstream = {"uri": "s3://bucket/x", "partition": None, "partitions": [""], "missing": []}
    old = upstream | {"materialized_at": "2024-01-01T12:00:00+00:00"}
    stopped = runs.run("reads", upstreams={"elsewhere": old})
    assert "The data was materialized at 2024-01-01 12:00:00 UTC" in stopped.failure["error"]
    new = upstream | {"materialized_at": "2999-01-01T12:00:00+00:00"}
    assert passed(runs.make("reads", upstreams={"elsewhere": new})) == {"fresh_within": True}
    unknown = runs.run("reads", upstreams={"elsewhere": upstream})
    assert "the time of materialization is not known" in unknown.failure["error"]
    # Of data that cannot be read here nothing else is known, which is no pass.
    unread = runs.run("counts", upstreams={"elsewhere": new})
    (result,) = validated(unread).values()
    assert (result["passed"], result["evaluated"]) == (False, False)
    assert result["message"].startswith("The validation cannot be evaluated: ")


@pytest.mark.parametrize("ahead", [timedelta(days=-3), timedelta(days=3)], ids=["fast", "slow"])
def test_freshness_goes_by_the_clock_that_told_when_the_data_was_made(
    runs: Runs, ahead: timedelta
) -> None:
    """This host's clock is fast, or slow, by three days against the database's."""
    runs.define("""
        from datetime import timedelta
        elsewhere = Asset("elsewhere", uri="s3://bucket/x")
        HALF = AssetValidation.fresh_within(timedelta(minutes=30))
        @asset(inlet_validations={"elsewhere": [HALF]})
        def reads(elsewhere): pass
    """)
    clock = clock_ahead_by(ahead)
    now = datetime.fromisoformat(clock["database"])
    upstream = {"uri": "s3://bucket/x", "partition": None, "partitions": [""], "missing": []}

    def upstream_of_age(ago: timedelta) -> dict[str, Any]:
        return {"elsewhere": upstream | {"materialized_at": (now - ago).isoformat()}}

    fresh = runs.make("reads", upstreams=upstream_of_age(timedelta(minutes=1)), clock=clock)
    assert passed(fresh) == {"fresh_within": True}
    old = runs.run("reads", upstreams=upstream_of_age(timedelta(hours=1)), clock=clock)
    assert passed(old) == {"fresh_within": False}
    assert "ago instead of at most 0:30:00" in old.failure["error"]


@pytest.mark.parametrize("ahead", [timedelta(days=-3), timedelta(days=3)], ids=["fast", "slow"])
def test_the_newest_value_is_compared_with_the_same_clock(
    spark_runs: Runs, ahead: timedelta
) -> None:
    spark_runs.define("""
        from datetime import timedelta
        HOUR = AssetValidation.fresh_within(timedelta(hours=1), column="at")
        @asset(uri=LAKE + "/seen", outlet_validations=[HOUR], params={"at": ""})
        def seen(spark, context):
            return spark.sql(f"select timestamp '{context['params']['at']}' as at")
    """)
    clock = clock_ahead_by(ahead)
    now = datetime.fromisoformat(clock["database"])

    def parameters(ago: timedelta) -> dict[str, Any]:
        return {"params": {"at": (now - ago).isoformat()}, "clock": clock}

    assert passed(spark_runs.make("seen", **parameters(timedelta(minutes=1)))) == {
        "fresh_within(at)": True
    }
    assert passed(spark_runs.run("seen", **parameters(timedelta(hours=2)))) == {
        "fresh_within(at)": False
    }


def test_partitions_that_are_missing_do_not_pass(runs: Runs) -> None:
    runs.define("""
        Asset("raw", uri="file:///nowhere")
        @asset(inlet_validations={"raw": [AssetValidation.row_count(min=1, severity="warn")]})
        def reads(raw): print("the function runs")
    """)
    upstream = {"uri": "file:///nowhere", "partition": None, "partitions": [], "missing": [""]}
    warned = runs.make("reads", upstreams={"raw": upstream})
    (result,) = validated(warned).values()
    assert not result["evaluated"]
    assert (
        "1 partition of raw that this run needs is not materialized: the whole asset"
        in result["message"]
    )
    assert "the function runs" in warned.log

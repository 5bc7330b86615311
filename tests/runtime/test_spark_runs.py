"""Runs that read and write data, on a real Spark Connect server."""

from pathlib import Path

import pytest
from pyarrow import parquet

from slicewise import PartitionByInterval
from tests.runtime.definition_texts import HOURS_BY_DAY
from tests.runtime.runs import Outcome, Runs


def rows_on_disk(folder: Path) -> int:
    return sum(parquet.read_metadata(path).num_rows for path in folder.glob("*.parquet"))


def test_a_returned_frame_is_written_and_read_downstream(spark_runs: Runs) -> None:
    spark_runs.define("""
        @asset(uri=f"{LAKE}/my numbers")
        def numbers(spark):
            return spark.range(10)

        @asset()
        def total(numbers, self, context):
            print(numbers.read().count(), context["asset"] is self, self.uri)
    """)
    outcome = spark_runs.make("numbers")
    assert outcome.types == ["started", "spark", "spark", "staged", "finished", "exited"]
    assert outcome.staged[""]["rows"] == 10
    assert outcome.staged[""]["bytes"] > 0
    assert rows_on_disk(spark_runs.lake / "my numbers") == 10
    read = spark_runs.make("total", upstream={"numbers": [""]})
    assert read.log == "10 True None\n"


def test_one_range_run_fills_one_folder_for_each_day(spark_runs: Runs) -> None:
    spark_runs.define(HOURS_BY_DAY)
    days = [f"2013-01-0{day}" for day in range(1, 5)]
    outcome = spark_runs.make("hours", days)
    assert {
        key: (partition["path"], partition["rows"]) for key, partition in outcome.staged.items()
    } == {day: (f"partition={day}", 24) for day in days}
    for day in days:
        folder = spark_runs.lake / "hours" / f"partition={day}"
        assert rows_on_disk(folder) == 24
        assert len(list(folder.glob("*.parquet"))) == 1
        assert (folder / f"_slicewise-{outcome.request['run_id']}-1-0123456789ab").exists()


def test_a_run_of_one_day_replaces_that_day_only(spark_runs: Runs) -> None:
    spark_runs.define(HOURS_BY_DAY)
    first = spark_runs.make("hours", ["2013-01-01", "2013-01-02"])
    second = spark_runs.make("hours", ["2013-01-02"])
    root = spark_runs.lake / "hours"
    for day, outcome in (("2013-01-01", first), ("2013-01-02", second)):
        marker = f"_slicewise-{outcome.request['run_id']}-1-0123456789ab"
        assert (root / f"partition={day}" / marker).exists()
    assert sorted(path.name for path in root.iterdir()) == [
        "partition=2013-01-01",
        "partition=2013-01-02",
    ]


def test_reading_names_the_folders_it_needs_and_no_others(spark_runs: Runs) -> None:
    spark_runs.define(
        HOURS_BY_DAY
        + """
    @asset(partition=DAYS)
    def count_hours(hours, context):
        frame = hours.read()
        print(frame.count(), dict(frame.dtypes)["partition"])
        print(hours.partitions == (context["partition"].key,), context["partition"])
        print(*frame.inputFiles())
    """
    )
    spark_runs.make("hours", ["2013-01-01", "2013-01-02", "2013-01-03"])
    read = spark_runs.make("count_hours", ["2013-01-02"], upstream={"hours": ["2013-01-02"]})
    lines = read.log.splitlines()
    assert lines[:2] == ["24 string", "True 2013-01-02"]
    (file,) = lines[2].split()
    assert "/partition=2013-01-02/" in file


def test_missing_upstream_partitions_are_named(spark_runs: Runs) -> None:
    spark_runs.define(
        HOURS_BY_DAY
        + """
    @asset(partition=DAYS)
    def reader(hours):
        hours.read()
    """
    )
    request = spark_runs.request("reader", ["2013-01-02"], upstream={"hours": []})
    request["upstreams"]["hours"]["missing"] = [f"2013-01-{day:02}" for day in range(1, 8)]
    messages = list(spark_runs.parent.launch(request).messages(30))
    error = Outcome(request, messages).failure["error"]
    assert "7 partitions of hours" in error
    assert "2013-01-05 and 2 more" in error


PRODUCT = """
    PARTITION = PartitionByProduct({
        "date": PartitionByInterval("@daily", start="2013-01-01", end="2013-01-03"),
        "airport": PartitionBySequence(["JFK", "a/b c", "02"]),
    })
    @asset(uri=f"{LAKE}/weather", partition=PARTITION)
    def weather(spark, context):
        rows = [(day, place, 1) for day in ("2013-01-01", "2013-01-02")
                for place in ("JFK", "a/b c", "02")]
        wanted = [(str(k["date"]), k["airport"]) for k in context["partition"].keys]
        rows = [row for row in rows if row[:2] in wanted]
        return spark.createDataFrame(rows, "date string, airport string, wind int")

    @asset(partition=PARTITION)
    def reader(weather):
        print(sorted(tuple(row) for row in weather.read().collect()))
"""


@pytest.mark.parametrize("together", [True, False])
def test_a_product_has_one_column_for_each_dimension(spark_runs: Runs, together: bool) -> None:
    spark_runs.define(PRODUCT)
    keys = [f"2013-01-0{day}|{place}" for day in (1, 2) for place in ("JFK", "a%2Fb%20c", "02")]
    for group in [keys] if together else [[key] for key in keys]:
        spark_runs.make("weather", group)
    names = sorted(path.name for path in (spark_runs.lake / "weather").glob("*/*"))
    assert names == sorted(["airport=JFK", "airport=a%2Fb c", "airport=02"] * 2)
    read = spark_runs.make("reader", [keys[1]], upstream={"weather": keys[1:3]})
    assert read.log == "[(1, '2013-01-01', '02'), (1, '2013-01-01', 'a/b c')]\n"


def test_partitions_without_rows_are_published_empty(spark_runs: Runs) -> None:
    spark_runs.define("""
        DAYS = PartitionByInterval("@daily", start="2013-01-01", end="2013-01-05")
        @asset(uri=f"{LAKE}/sparse", partition=DAYS)
        def sparse(spark, context):
            frame = spark.createDataFrame([("2013-01-02", 7)], "partition string, n int")
            return frame if len(context["partition"].keys) > 1 else frame.where("false")
        @asset(partition=DAYS)
        def reader(sparse):
            print(sparse.read().count(), sparse.read().dtypes)
    """)
    outcome = spark_runs.make("sparse", ["2013-01-01", "2013-01-02"])
    assert [partition["rows"] for partition in outcome.staged.values()] == [0, 1]
    outcome = spark_runs.make("sparse", ["2013-01-03"])
    assert [partition["rows"] for partition in outcome.staged.values()] == [0]
    for day in ("2013-01-01", "2013-01-03"):
        read = spark_runs.make("reader", ["2013-01-01"], upstream={"sparse": [day]})
        assert read.log == "0 [('n', 'int'), ('partition', 'string')]\n"


@pytest.mark.parametrize(
    ("frame", "keys", "message"),
    [
        ("createDataFrame([('2013-01-09', 1)], 'partition string, n int')", 2, "'2013-01-09'"),
        ("createDataFrame([(None, 1)], 'partition string, n int')", 2, "'partition' is null"),
        ("sql(\"select date'2013-01-02' partition, 1 n\")", 1, "'2013-01-02'"),
        ("sql(\"select timestamp'2013-01-03 00:00' partition, 1 n\")", 2, "2013-01-03 00:00:00"),
        ("range(3)", 2, "no column 'partition'"),
        ("sql('select 1.5 partition, 1 n')", 2, "decimal"),
        ("sql(\"select date'2013-01-02' PARTITION, 1 n\")", 1, "has a column 'PARTITION'"),
        ("sql(\"select date'2013-01-02' PARTITION, 1 n\")", 2, "has a column 'PARTITION'"),
    ],
)
def test_rows_outside_the_run_fail_it_before_anything_is_published(
    spark_runs: Runs, frame: str, keys: int, message: str
) -> None:
    spark_runs.define(f"""
        DAYS = PartitionByInterval("@daily", start="2013-01-01", end="2013-01-05")
        @asset(uri=f"{{LAKE}}/strict", partition=DAYS)
        def strict(spark):
            return spark.{frame}
    """)
    outcome = spark_runs.run("strict", ["2013-01-01", "2013-01-02"][:keys])
    assert message in outcome.failure["error"]
    assert outcome.failure["kind"] == "code"
    assert not outcome.of_type("staged")
    published = [path.name for path in (spark_runs.lake / "strict").glob("partition=*")]
    assert published == []


@pytest.mark.parametrize(
    ("zone", "text"), [("UTC", "2013-01-02"), ("America/New_York", "2013-01-02")]
)
def test_a_date_belongs_to_the_day_of_the_definitions_zone(
    spark_runs: Runs, zone: str, text: str
) -> None:
    spark_runs.define(f"""
        DAYS = PartitionByInterval("@daily", timezone="{zone}")
        @asset(uri=f"{{LAKE}}/dated", partition=DAYS)
        def dated(spark):
            return spark.sql("select date'{text}' partition, 1 n")
    """)
    outcome = spark_runs.make("dated", ["2013-01-01", "2013-01-02", "2013-01-03"])
    assert {key: partition["rows"] for key, partition in outcome.staged.items()} == {
        "2013-01-01": 0,
        "2013-01-02": 1,
        "2013-01-03": 0,
    }


def test_every_hour_of_a_day_with_25_gets_its_own_rows(spark_runs: Runs) -> None:
    spark_runs.define("""
        HOURS = PartitionByInterval("@hourly", timezone="America/New_York", name="hour")
        @asset(uri=f"{LAKE}/ticks", partition=HOURS)
        def ticks(spark, context):
            span = context["partition"].interval
            first, last = int(span.start.timestamp()), int(span.end.timestamp())
            return spark.sql(f"select timestamp_seconds(id) hour, id from range({first},{last},60)")
    """)
    hours = PartitionByInterval("@hourly", timezone="America/New_York")
    keys = [key.text for key in hours.keys("2013-11-03", "2013-11-04")]
    outcome = spark_runs.make("ticks", keys)
    assert len(keys) == 25
    assert [partition["rows"] for partition in outcome.staged.values()] == [60] * 25


def test_columns_may_be_made_before_spark_is_asked_for(spark_runs: Runs) -> None:
    spark_runs.define("""
        @asset(uri=f"{LAKE}/numbers")
        def numbers(spark):
            return spark.range(10)
        @asset()
        def small(numbers):
            from pyspark.sql import functions as F
            is_small = F.col("id") < 3
            print(numbers.read().where(is_small).count())
    """)
    spark_runs.make("numbers")
    assert spark_runs.run("small", upstream={"numbers": [""]}).log == "3\n"


def test_a_function_may_write_by_itself_once(spark_runs: Runs) -> None:
    spark_runs.define("""
        @asset(uri=f"{LAKE}/own")
        def own(self, spark):
            self.write(spark.range(3))
        @asset(uri=f"{LAKE}/twice")
        def twice(self, spark):
            self.write(spark.range(3))
            self.write(spark.range(3))
        @asset(uri=f"{LAKE}/nothing")
        def nothing():
            pass
        @asset(uri=f"{LAKE}/list")
        def a_list():
            return [1]
        @asset(uri="kafka://broker/x")
        def elsewhere(spark):
            return spark.range(3)
    """)
    assert spark_runs.make("own").staged[""]["rows"] == 3
    assert "written already" in spark_runs.run("twice").failure["error"]
    assert "returned nothing" in spark_runs.run("nothing").failure["error"]
    assert "not list" in spark_runs.run("a_list").failure["error"]
    assert "kafka" in spark_runs.run("elsewhere").failure["error"]

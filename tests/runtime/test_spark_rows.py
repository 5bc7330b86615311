"""The partitions of rows: by keys of all kinds, one by one, and for several assets."""

from pathlib import Path

import pytest
from pyarrow import parquet

from slicewise.uris.canonical import uri_path
from tests.runtime.runs import Runs

PLACES = """
    class Position(PartitionKey):
        x: float
        y: float
        def __str__(self):
            return f"at {self.x}, {self.y}"
    FOUND = [Position(1.5, 2.0), Position(3.0, 4.0), Position(-1.0, 0.0)]
    PLACES = PartitionBySequence(FOUND, name="place")
"""


def rows(folder: Path) -> int:
    return sum(parquet.read_metadata(path).num_rows for path in folder.glob("*.parquet"))


def test_rows_are_found_by_the_texts_of_the_users_own_keys(spark_runs: Runs) -> None:
    spark_runs.define(
        PLACES
        + """
    @asset(uri=f"{LAKE}/positions", partition=PLACES, strategy="range")
    def positions(spark, context):
        found = [(key.text, key.x) for key in context["partition"].keys for _ in range(2)]
        return spark.createDataFrame(found, "place string, x double")

    @asset(partition=PLACES)
    def reader(positions, context):
        (key,) = positions.partitions
        print(type(key) is Position, key.x, positions.read().select("place", "x").collect())
    """
    )
    keys = ["1.5~2", "3~4", "-1~0"]
    outcome = spark_runs.make("positions", keys)
    assert {
        key: (partition["path"], partition["rows"]) for key, partition in outcome.staged.items()
    } == {key: (f"place={key}", 2) for key in keys}
    read = spark_runs.make("reader", ["3~4"], upstream={"positions": ["3~4"]})
    assert read.log == "True 3.0 [Row(place='3~4', x=3.0), Row(place='3~4', x=3.0)]\n"


def test_a_dimension_of_users_keys_stands_beside_one_of_time(spark_runs: Runs) -> None:
    spark_runs.define(
        PLACES
        + """
    DAYS = PartitionByInterval("@daily", start="2013-01-01", end="2013-01-05")
    BOTH = PartitionByProduct({"day": DAYS, "place": PLACES})
    @asset(uri=f"{LAKE}/both", partition=BOTH, strategy="range")
    def both(spark, self, context):
        from pyspark.sql import functions as F
        first = context["partition"].interval.start.timestamp()
        at = F.timestamp_seconds(F.col("id") * 3600 + int(first))
        frame = spark.range(48).select(F.lit("3~4").alias("place"), at.alias("at"))
        return frame.select("place", "at", partition_column("at", self).alias("day"))
    """
    )
    keys = [f"2013-01-0{day}|{place}" for day in (1, 2) for place in ("1.5~2", "3~4")]
    outcome = spark_runs.make("both", keys)
    assert {partition["path"]: partition["rows"] for partition in outcome.staged.values()} == {
        f"day=2013-01-0{day}/place={place}": 24 * (place == "3~4")
        for day in (1, 2)
        for place in ("1.5~2", "3~4")
    }


def test_columns_name_keys_as_texts_or_as_the_values_that_they_are(spark_runs: Runs) -> None:
    spark_runs.define("""
        from datetime import date
        from decimal import Decimal
        from slicewise.io import StorageLocation, Writer, storage_at
        CASES = [
            # Plain and percent-encoded; the last key is, plain, what the first one is encoded.
            (["a/b", "ü", "a%2Fb"], "string", ["a/b", "a%2Fb", "ü", "%C3%BC"]),
            ([1, 2.5, 300], "double", [1.0, 2.5, 300.0, 1.0]),
            ([1, 2.5], "decimal(10,2)", [Decimal("2.50"), Decimal("1.00")]),
            ([0, 1], "boolean", [True, False, True]),
            ([7, 8], "int", [7, 8, 8]),
            ([date(2013, 1, 1), date(2013, 1, 2)], "date", [date(2013, 1, 2)]),
        ]
        @asset(params={"folder": ""})
        def keyed(spark, context):
            for number, (values, column, held) in enumerate(CASES):
                keys = PartitionBySequence(values, name="key")
                kept = storage_at(StorageLocation(uri=f"{context['params']['folder']}/{number}"))
                frame = spark.createDataFrame([(one, 1) for one in held], f"key {column}, n int")
                writer = Writer(run_id=1, attempt="1")
                staged = kept.stage(frame, keys, keys.values.keys, writer, single_partition=False)
                print(column, *(one.rows for one in staged))
    """)
    outcome = spark_runs.run("keyed", params={"folder": str(spark_runs.lake)})
    assert outcome.log.splitlines() == [
        *("string 1 2 1", "double 2 1 1", "decimal(10,2) 1 1"),
        *("boolean 1 2", "int 1 2", "date 0 1"),
    ], outcome.messages[-2:]


def test_a_run_writes_the_keys_that_it_finds_one_by_one(spark_runs: Runs) -> None:
    spark_runs.define("""
        CUSTOMERS = PartitionAtRuntime("customer")
        @asset(uri=f"{LAKE}/customers", partition=CUSTOMERS)
        def customers(self, spark):
            from pyspark.sql import functions as F
            self.write(spark.range(3), partition="a/b")
            self.write(spark.range(4).withColumn("customer", F.lit(5)), partition=5)
            for key in ("a/b", "x" * 250, None, {"id": 1}):
                try:
                    self.write(spark.range(1), partition=key)
                except ValueError as error:
                    print(error)
            CUSTOMERS.add_partition(key="without rows")
    """)
    outcome = spark_runs.make("customers", [])
    assert {partition["path"]: partition["rows"] for partition in outcome.staged.values()} == {
        "customer=a%2Fb": 3,
        "customer=5": 4,
    }
    (discovery,) = outcome.of_type("discovered")
    assert discovery["keys"] == ["a/b", 5, "without rows"]
    root = spark_runs.lake / "customers"
    assert sorted(path.name for path in root.iterdir()) == ["customer=5", "customer=a%2Fb"]
    assert rows(root / "customer=5") == 4
    assert (root / "customer=5" / f"_slicewise-{outcome.request['run_id']}-1-0123456789ab").exists()
    refused = ("written already", "at most 255", "name the partition of the rows", "PartitionKey")
    for message, line in zip(refused, outcome.log.splitlines(), strict=True):
        assert message in line


def test_no_key_is_taken_for_the_mark_of_rows_outside(spark_runs: Runs) -> None:
    spark_runs.define("""
        TEXTS = PartitionBySequence(["_slicewise-outside", "outside", "a"], name="part")
        @asset(uri=f"{LAKE}/marks", partition=TEXTS, strategy="range")
        def marks(spark, context):
            extra = ["nothing"] if context["params"].get("wrong") else []
            found = [(1, key) for key in [*context["partition"].keys, *extra]]
            return spark.createDataFrame(found, "n int, part string")
    """)
    keys = ["_slicewise-outside", "outside", "a"]
    outcome = spark_runs.make("marks", keys)
    assert {key: partition["rows"] for key, partition in outcome.staged.items()} == dict.fromkeys(
        keys, 1
    )
    wrong = spark_runs.run("marks", keys, params={"wrong": True})
    errors = "\n".join(str(message.get("error")) for message in wrong.messages)
    assert "the column 'part' holds 'nothing'" in errors


def test_a_run_of_several_partitions_may_write_them_one_by_one(spark_runs: Runs) -> None:
    spark_runs.define("""
        DAYS = PartitionByInterval("@daily", start="2013-01-01", end="2013-01-09")
        @asset(uri=f"{LAKE}/days", partition=DAYS, strategy="range")
        def days(self, spark, context):
            first, second = context["partition"].keys
            wrong = spark.createDataFrame([("2013-01-07", 1)], "partition string, n int")
            try:
                self.write(wrong, partition=first)
            except RowsError as error:
                print(error)
            try:
                self.write(spark.range(1), partition="2013-01-08")
            except PartitionKeyError as error:
                print(error)
            self.write(spark.range(3), partition=first)
            self.write(spark.range(4), partition=second)
    """)
    keys = ["2013-01-01", "2013-01-02"]
    outcome = spark_runs.make("days", keys)
    assert {key: partition["rows"] for key, partition in outcome.staged.items()} == dict(
        zip(keys, (3, 4), strict=True)
    )
    assert outcome.log.splitlines() == [
        "1 row lies outside the run's 1 partition: the column 'partition' holds '2013-01-07'."
        ' Filter the frame by context["partition"].filter(frame), or declare outside="drop"',
        "this run does not write '2013-01-08', a partition of days",
    ]


MULTI = """
    DAYS = PartitionByInterval("@daily", start="2013-01-01", end="2013-01-05")
    @asset.multi(
        outlets=[Asset("left", uri=f"{LAKE}/left"), Asset("right", uri=f"{LAKE}/right")],
        partition=DAYS,
    )
    def both(spark, self, context):
        frames = {"left": spark.range(2), "right": spark.range(3)}
        for name in context["params"].get("written", []):
            self[name].write(frames.pop(name))
        if "fails" in context["params"]:
            raise ValueError("after all")
        return frames
"""


@pytest.mark.parametrize("written", [[], ["left"]])
def test_one_run_stages_each_of_several_assets(spark_runs: Runs, written: list[str]) -> None:
    spark_runs.define(MULTI)
    outcome = spark_runs.make("both", ["2013-01-02"], params={"written": written})
    assert outcome.types[-4:] == ["staged", "staged", "finished", "exited"]
    staged = {message["asset"]: message for message in outcome.of_type("staged")}
    assert {name: uri_path(message["root"]) for name, message in staged.items()} == {
        name: spark_runs.lake / name for name in ("left", "right")
    }
    for name, count in (("left", 2), ("right", 3)):
        assert rows(spark_runs.lake / name / "partition=2013-01-02") == count


def test_several_assets_are_staged_all_or_none(spark_runs: Runs) -> None:
    spark_runs.define(MULTI)
    params = {"written": ["left"], "fails": True}
    failed = spark_runs.run("both", ["2013-01-02"], params=params)
    assert "after all" in failed.failure["error"]
    assert failed.types[-2:] == ["failed", "exited"]
    assert failed.of_type("staged") == []


def test_a_frame_is_cut_to_the_partitions_of_the_run_where_it_is_asked_for(
    spark_runs: Runs,
) -> None:
    spark_runs.define("""
        SALES = PartitionByProduct({
            "day": PartitionByInterval("@daily", start="2013-01-01", end="2013-01-05"),
            "region": PartitionBySequence(["nord", "west"]),
        })
        REGIONS = ("nord", "west", "x")
        ROWS = [(f"2013-01-0{day}", region, 1) for day in (1, 2) for region in REGIONS]
        def rows(spark):
            return spark.createDataFrame(ROWS, "day string, region string, amount int")
        @asset(uri=f"{LAKE}/cut", partition=SALES, strategy="range")
        def cut(spark, context):
            partition = context["partition"]
            print(partition.filter(rows(spark)).count(),
                partition.filter(rows(spark).select("region")).count(),
                partition.filter(spark.range(3)).count())
            return partition.filter(rows(spark))
        @asset(uri=f"{LAKE}/dropped", partition=SALES, strategy="range", outside="drop")
        def dropped(spark):
            return rows(spark)
        @asset(uri=f"{LAKE}/nulls", partition=SALES, strategy="range", outside="drop")
        def nulls(spark):
            return rows(spark).union(spark.sql("select '2013-01-01', cast(null as string), 1"))
        @asset(uri=f"{LAKE}/refused", partition=SALES, strategy="range")
        def refused(spark):
            return rows(spark)
    """)
    keys = ["2013-01-01|nord", "2013-01-02|west"]  # no whole product of days and regions
    cut = spark_runs.make("cut", keys)
    assert cut.log == "2 4 3\n"
    for outcome in (cut, spark_runs.make("dropped", keys)):
        assert {
            key: partition["rows"] for key, partition in outcome.staged.items()
        } == dict.fromkeys(keys, 1)
    assert "is null" in spark_runs.run("nulls", keys).failure["error"]
    error = spark_runs.run("refused", keys).failure["error"]
    assert 'context["partition"].filter' in error
    assert 'outside="drop"' in error


@pytest.mark.parametrize(
    ("columns", "advice"),
    [
        ("'JFK' origin, '2013-01-01' day", "rename a column that holds the keys of 'airport'"),
        ("'JFK' airport, 1 hour", "slicewise.partition_column derives the column"),
    ],
)
def test_the_advice_for_a_missing_column_goes_by_the_kind_of_the_dimension(
    spark_runs: Runs, columns: str, advice: str
) -> None:
    spark_runs.define(f"""
    DAYS = PartitionByInterval("@daily", start="2013-01-01", end="2013-01-05")
    AIRPORTS = PartitionBySequence(["JFK", "LGA"], name="airport")
    BOTH = PartitionByProduct({{"day": DAYS, "airport": AIRPORTS}})
    @asset(uri=f"{{LAKE}}/advised", partition=BOTH)
    def advised(spark):
        return spark.sql("select {columns}")
    """)
    outcome = spark_runs.run("advised", ["2013-01-01|JFK", "2013-01-01|LGA"])
    assert advice in outcome.failure["error"]
    assert ("timestamp" in outcome.failure["error"]) == ("hour" in columns)

"""Parquet, CSV, JSON and ORC: written data is read unchanged, in every write mode."""

from pathlib import Path

import pytest

from slicewise import Asset, DefinitionError, asset
from tests.runtime.runs import Runs

# One run writes all formats: with the engine `submit` each run takes seconds to start.
ASSETS = """
    from datetime import date, datetime, timezone
    from decimal import Decimal

    PLACES = PartitionBySequence(["a/b", "02"], name="place")
    COLUMNS = ("note string, at timestamp, wall timestamp_ntz, day date, price decimal(9,2),"
               " size double, yes boolean, n bigint")
    NOTES = ['say "hi", twice', " spaces ", "two\\nlines", "back\\\\slash", "", None, "caf\\u00e9"]
    AT = datetime(2024, 3, 31, 1, 2, 3, 456789, tzinfo=timezone.utc)
    WALL, DAY, PRICE = AT.replace(tzinfo=None), date(2024, 2, 29), Decimal("1.50")
    ROWS = [(note, AT, WALL, DAY, PRICE, 0.1, n % 2 == 0, n) for n, note in enumerate(NOTES)]
    ROWS.append((None,) * 8)
    FORMATS = ("parquet", "csv", "json", "orc")

    @asset.multi(outlets=[Asset(f"as_{one}", uri=f"{LAKE}/as.{one}") for one in FORMATS],
                 partition=PLACES, strategy="range", write_mode="append")
    def tables(spark):
        frame = spark.createDataFrame([(*row, "a/b") for row in ROWS], COLUMNS + ", place string")
        return {f"as_{one}": frame for one in FORMATS}

    @asset(uri=f"{LAKE}/model", format="json", write_mode="version")
    def model(spark, context):
        return spark.sql("select %d as weight" % context["run_id"])

    # Something else has written it, with a header and columns in a type of their own.
    outside = Asset("outside", uri=f"{LAKE}/outside.csv", columns={"id": "int", "at": "timestamp"})

    @asset()
    def reads(as_parquet, as_csv, as_json, as_orc, model, outside, context):
        import pyspark.sql.functions as F
        for handle in (as_parquet, as_csv, as_json, as_orc):
            frame = handle.read()
            print("columns:", frame.schema.simpleString())
            found = sorted(map(repr, frame.drop("place").collect()))
            spark_rows = frame.sparkSession.createDataFrame(ROWS + ROWS, COLUMNS)
            same = found == sorted(map(repr, spark_rows.collect()))
            print("same:", same, frame.where("place = '02'").count())
        weights = [model.read(version=n).head().weight for n in (1, 2)]
        print("weights:", *weights, model.read().head().weight)
        print("outside:", outside.read().collect())
        for ask in (lambda: model.read(version=7), lambda: outside.read(version=1)):
            try:
                ask()
            except ValueError as error:
                print("refused:", error)
"""


@pytest.mark.parametrize("engine_runs", ["connect", "local"], indirect=True)
def test_data_in_any_format_and_mode_is_read_as_written(
    engine_runs: Runs, spark_runs: Runs
) -> None:
    engine_runs.define(ASSETS)
    spark_runs.define(ASSETS)
    # What one engine has written another one adds to, and reads.
    first, second = (engine.make("tables", ["a%2Fb", "02"]) for engine in (engine_runs, spark_runs))
    for outcome in (first, second):
        pieces_by_asset = {
            message["asset"]: message["partitions"] for message in outcome.of_type("staged")
        }
        rows = {
            name: [partition["rows"] for partition in pieces]
            for name, pieces in pieces_by_asset.items()
        }
        assert rows == {
            f"as_{file_format}": [8, 0] for file_format in ("parquet", "csv", "json", "orc")
        }
    models = [spark_runs.make("model").request["run_id"] for _ in range(2)]
    engine_runs.lake.joinpath("outside.csv").write_text("id,at\n7,2024-01-01 00:00:00\n")
    keys = {
        f"as_{file_format}": ["a%2Fb", "02"] for file_format in ("parquet", "csv", "json", "orc")
    }
    read = spark_runs.run("reads", upstream={**keys, "model": [""], "outside": [""]})
    words = ("columns:", "same:", "weights:", "outside:", "refused:")
    shown_lines = [line for line in read.log.splitlines() if line.startswith(words)]
    columns = (
        "columns: struct<note:string,at:timestamp,wall:timestamp_ntz,day:date,price:decimal(9,2),"
        "size:double,yes:boolean,n:bigint,place:string>"
    )
    assert shown_lines[:8] == [columns, "same: True 0"] * 4, read.log
    assert shown_lines[8] == f"weights: {models[0]} {models[1]} {models[1]}"
    assert shown_lines[9].startswith("outside: [Row(id=7, at=datetime.datetime(2024, 1, 1, 0, 0")
    assert "version 7 of" in shown_lines[10]
    assert shown_lines[11].startswith("refused: version 1 of"), read.log
    schemas = list(engine_runs.lake.glob("as.csv/place=*/_slicewise-schema.json"))
    assert len(schemas) == 2


def test_rows_of_csv_are_counted_whatever_is_in_them(spark_runs: Runs) -> None:
    spark_runs.define("""
        TEXTS = ['two\\nlines, "said"' * 100_000, '"' * 1_500_000, "\\n", '"', "", None, "\\r", "x"]
        NAMES = 'text string, ` say "a,\\nb" ` int'
        @asset(uri=f"{LAKE}/texts", format="csv")
        def texts(spark):
            return spark.createDataFrame([(text, 1) for text in TEXTS], NAMES)
        @asset(uri=f"{LAKE}/none", format="csv")
        def none(spark):
            return spark.createDataFrame([], "text string")
        @asset()
        def reads(texts, none):
            found = sorted(repr(row.text) for row in texts.read().collect())
            print("same:", found == sorted(map(repr, TEXTS)), none.read().count())
    """)
    assert spark_runs.make("texts").staged[""]["rows"] == 8
    assert spark_runs.make("none").staged[""]["rows"] == 0
    read = spark_runs.run("reads", upstream={"texts": [""], "none": [""]})
    assert read.log == "same: True 0\n", read.messages


def test_rows_whose_columns_do_not_fit_are_not_appended(spark_runs: Runs) -> None:
    spark_runs.define("""
        @asset(uri=f"{LAKE}/log", write_mode="append", params={"sql": ""})
        def log(spark, context):
            return spark.sql(context["params"]["sql"])
        @asset(uri=f"{LAKE}/lines", format="csv", write_mode="append", params={"sql": ""})
        def lines(spark, context):
            return spark.sql(context["params"]["sql"])
        @asset()
        def reads(log):
            print(sorted(log.read().collect()))
    """)
    for name in ("log", "lines"):
        spark_runs.make(name, params={"sql": "select 1 as n, 'x' as t"})
    for name, sql, message in (
        ("log", "select 1.5 as n, 'y' as t", "'n' of type int; rows with a column of type decimal"),
        ("log", "select 1 as n", "a column 't', which the rows to be appended do not have"),
        ("lines", "select 'y' as t, 2 as n", "CSV knows columns by position"),
    ):
        assert message in spark_runs.run(name, params={"sql": sql}).failure["error"]
    spark_runs.make("log", params={"sql": "select 2 as n, 'y' as t, true as late"})
    read = spark_runs.run("reads", upstream={"log": [""]})
    assert "Row(n=1, t='x', late=None), Row(n=2, t='y', late=True)" in read.log, read.messages


@pytest.mark.parametrize(
    ("uri", "declared", "format"),
    [
        ("file:///lake/x", None, "parquet"),
        ("file:///lake/x.csv", None, "csv"),
        ("file:///lake/v1.2", None, "parquet"),
        ("file:///lake/x.jsonl.gz", None, "json"),
        ("file:///lake/x", "orc", "orc"),
        ("bigquery://acme/a/b", None, None),
        (None, None, None),
    ],
)
def test_the_format_is_what_is_said_or_the_extension(
    uri: str | None, declared: str | None, format: str | None
) -> None:
    assert Asset("x", uri=uri, format=declared).format == format


@pytest.mark.parametrize(
    ("uri", "declared", "sentence"),
    [
        ("file:///lake/x", "xlsx", 'format is one of "parquet", "csv", "json", "orc", not'),
        ("file:///lake/x.csv", "orc", "two formats; change one of them"),
        ("bigquery://acme/a/b", "csv", "no installed storage reads or writes bigquery: URIs"),
        (None, "csv", "the asset has no uri; leave format out"),
    ],
)
def test_a_format_that_is_not_written_is_refused(
    uri: str | None, declared: str, sentence: str
) -> None:
    with pytest.raises(DefinitionError, match=sentence):

        @asset(uri=uri, format=declared)
        def flights() -> None: ...


def test_files_whose_columns_nothing_says_are_refused_with_a_sentence(
    spark_runs: Runs, tmp_path: Path
) -> None:
    spark_runs.define("""
        outside = Asset("outside", uri=f"{LAKE}/outside.csv")
        @asset()
        def reads(outside):
            outside.read()
    """)
    spark_runs.lake.mkdir()
    spark_runs.lake.joinpath("outside.csv").write_text("id\n7\n")
    error = spark_runs.run("reads", upstream={"outside": [""]}).failure["error"]
    assert "the columns of the csv files" in error
    assert "columns={" in error

"""Tables of PostgreSQL with columns of their own.

A value that fits is converted, another value is refused, and no row changes on the way.
"""

from datetime import date, datetime
from typing import Any
from urllib.parse import urlsplit

import pytest

from slicewise.storage import StorageError
from tests.runtime.postgres_schema import Shop
from tests.runtime.runs import Runs, unmade_errors

IN_BERLIN = datetime.fromisoformat("2024-01-01T00:30:00+01:00")


@pytest.mark.parametrize(
    ("column", "staged", "value"),
    [
        ("varchar(3)", "text", "four"),
        ("char(3)", "text", "four"),
        ("bit(3)", "text", "1010"),
        ("varchar(3)[]", "text[]", ["one", "four"]),
        ("shop.brief", "text", "four"),
        ("numeric(3,1)", "numeric(9,1)", 1234.5),
        ("smallint", "int", 70_000),
    ],
)
def test_a_value_too_long_for_a_column_fails_the_run(
    shop: Shop, column: str, staged: str, value: Any
) -> None:
    shop.database.execute("CREATE DOMAIN shop.brief AS varchar(3)")
    shop.database.execute(f"CREATE TABLE shop.sales (day text, one {column})")
    shop.database.execute("INSERT INTO shop.sales VALUES ('mon', NULL)")
    writer = shop.stage(1, [("mon", value)], columns=f"day text, one {staged}")
    with pytest.raises(StorageError, match=r"too long|does not match|overflow|out of range"):
        shop.publish(writer, "mon")
    assert shop.rows("day, one") == [("mon", None)]


@pytest.mark.parametrize(
    ("column", "staged", "value", "then"),
    [
        ("varchar(4)", "text", "four", "four"),
        ("char(5)", "text", "four", "four "),
        ("shop.brief", "text", "one", "one"),
        ("jsonb", "text", '{"a":  1}', '{"a": 1}'),
        (
            "uuid",
            "text",
            "6B0F1A9C4F4C4B3C9D8E0A1B2C3D4E5F",
            "6b0f1a9c-4f4c-4b3c-9d8e-0a1b2c3d4e5f",
        ),
        ("numeric(3,1)", "numeric(9,2)", 12.34, "12.3"),
        ("int", "boolean", True, "1"),
    ],
)
def test_a_fitting_value_is_converted_to_the_column_type(
    shop: Shop, column: str, staged: str, value: Any, then: str
) -> None:
    shop.database.execute("CREATE DOMAIN shop.brief AS varchar(3)")
    shop.database.execute(f"CREATE TABLE shop.sales (day varchar(20), one {column})")
    shop.publish(shop.stage(1, [("mon", value)], columns=f"day text, one {staged}"), "mon")
    assert shop.rows("day, format('%s', one)") == [("mon", then)]


@pytest.mark.parametrize("said_by", ["server", "environment"])
def test_instants_are_utc_whatever_zone_the_server_or_the_worker_is_in(
    shop: Shop, said_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.database.execute(
        "CREATE TABLE shop.sales (day text, at timestamp, of date, told text, exactly timestamptz)"
    )
    columns = "day text, at timestamptz, of timestamptz, told timestamptz, exactly timestamptz"
    writer = shop.stage(1, [("mon", *[IN_BERLIN] * 4)], columns=columns)
    database = urlsplit(shop.server).path[1:]
    zone = f'ALTER ROLE CURRENT_USER IN DATABASE "{database}" SET TimeZone TO'
    if said_by == "environment":
        monkeypatch.setenv("PGTZ", "Europe/Berlin")
    else:
        shop.database.execute(f"{zone} 'Europe/Berlin'")
    try:
        shop.publish(writer, "mon")
    finally:
        shop.database.execute(f"{zone} DEFAULT")
    assert shop.rows("at, of, told, exactly") == [
        (datetime(2023, 12, 31, 23, 30), date(2023, 12, 31), "2023-12-31 23:30:00+00", IN_BERLIN)
    ]


def test_every_frame_of_a_run_is_held_against_the_columns_that_are_there(shop: Shop) -> None:
    shop.stage(1, [("mon", 1)], separate_key="mon")
    writer = shop.stage(1, [("tue", 2, 3)], columns="day text, n int, more int", separate_key="tue")
    with pytest.raises(StorageError, match="no column 'more', which the frame has"):
        shop.publish(writer, "mon", "tue")
    shop.database.execute("CREATE TABLE shop.sales (day text, more int, n int)")
    shop.publish(writer, "mon", "tue")
    assert shop.rows("day, n, more") == [("mon", 1, None), ("tue", 2, 3)]


def test_a_table_of_which_a_dimension_has_no_column_is_refused(shop: Shop) -> None:
    shop.database.execute("CREATE TABLE shop.sales (day date, n int)")
    with pytest.raises(StorageError, match=r"'day' of .* is of type date"):
        shop.write(1, [("mon", 1)], "mon")


APART = """
    DAYS = PartitionBySequence(["mon", "tue", "it's"], name="day")

    @validation
    def told_apart(frame):
        "Prices are in hundreds, counts are not."
        assert frame.where("price < 100 OR n > 9").count() == 0

    @asset(uri="{uri}", partition=DAYS, strategy="range", on_partial="publish",
           outlet_validations=[AssetValidation.not_null("n"), AssetValidation.row_count(min=1)])
    def returned(spark):
        return spark.sql("VALUES ('mon', 1), ('tue', NULL), (\\"it's\\", 3) AS rows(day, n)")

    @asset(uri="{uri}", partition=DAYS, strategy="range", outlet_validations=[told_apart])
    def written(self, spark):
        self.write(spark.sql("SELECT 100 AS price, 1 AS n"), partition="mon")
        self.write(spark.sql("SELECT 2 AS n, 'few' AS how, 200 AS price"), partition="tue")
        self.write(spark.sql("SELECT 300 AS price, 3 AS n"), partition="it's")
"""


@pytest.mark.usefixtures("jdbc_driver")
def test_a_day_that_does_not_pass_keeps_no_other_from_being_published(
    spark_runs: Runs, shop: Shop
) -> None:
    spark_runs.connections = {shop.server: shop.connection}
    spark_runs.define(APART.format(uri=shop.uri))
    outcome = spark_runs.run("returned", ["mon", "tue", "it%27s"])
    assert list(outcome.staged) == ["mon", "it%27s"], outcome.log
    assert list(unmade_errors(outcome)) == ["tue"]
    assert "does not pass not_null(n)" in unmade_errors(outcome)["tue"]


@pytest.mark.usefixtures("jdbc_driver")
def test_frames_written_apart_are_read_together_by_the_names_of_their_columns(
    spark_runs: Runs, shop: Shop
) -> None:
    spark_runs.connections = {shop.server: shop.connection}
    shop.database.execute("CREATE TABLE shop.sales (day text, n int, price int, how text)")
    spark_runs.define(APART.format(uri=shop.uri))
    spark_runs.make("written", ["mon", "tue", "it%27s"])
    assert shop.rows("day, n, price, how") == [
        ("it's", 3, 300, None),
        ("mon", 1, 100, None),
        ("tue", 2, 200, "few"),
    ]

"""Tables of PostgreSQL: a run's partitions change in one transaction, once, by any worker."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier, Thread

import pytest

from slicewise.io import Writer
from slicewise.io.publishing_sql import Tables
from slicewise.storage import StagingLostError, StorageError, TryAgainError
from tests.runtime.postgres_schema import PATHS, Shop
from tests.runtime.runs import Runs


def test_a_run_replaces_its_own_partitions_and_no_others(shop: Shop) -> None:
    shop.write(1, [("mon", 1), ("mon", 2), ("tue", 3)], "mon", "tue")
    shop.write(2, [("mon", 9)], "mon")
    assert shop.rows() == [("mon", 9), ("tue", 3)]
    assert shop.tables() == {"sales", "_slicewise_published"}


def test_a_partition_without_rows_is_there_and_empty(shop: Shop) -> None:
    shop.write(1, [("mon", 1)], "mon")
    writer = shop.write(2, [], "mon")
    assert shop.rows() == []
    assert shop.storage().published([PATHS["mon"], PATHS["tue"]], writer) == [PATHS["mon"]]


@pytest.mark.parametrize("mode", ["replace", "append"])
def test_publishing_again_changes_nothing(shop: Shop, mode: str) -> None:
    shop.write(1, [("mon", 1)], "mon", mode=mode)
    writer = shop.write(2, [("mon", 2)], "mon", mode=mode)
    before = shop.rows()
    shop.publish(writer, "mon", mode=mode)
    assert shop.rows() == before == ([("mon", 1), ("mon", 2)][mode == "replace" :])


def test_a_worker_that_wakes_up_late_changes_nothing(shop: Shop) -> None:
    late = shop.write(1, [("mon", 1)], "mon")
    shop.write(2, [("mon", 2)], "mon")
    with pytest.raises(StagingLostError):
        shop.publish(late, "mon")
    assert shop.rows() == [("mon", 2)]


def test_a_worker_that_stopped_in_its_transaction_is_ended_by_its_successor(shop: Shop) -> None:
    shop.write(1, [("mon", 1)], "mon")
    writer = shop.stage(2, [("mon", 2)])

    def wake_up_late() -> None:
        with shop.storage()._tables(writer) as stopped, stopped._connection.transaction():
            stopped._lock()
            stopped._remove([PATHS["mon"]])
            assert shop.rows() == [("mon", 1)]  # readers see what was there
            shop.publish(replace(writer, fence=2), "mon")
            assert shop.rows() == [("mon", 2)]
            stopped._connection.execute("SELECT 1")

    with pytest.raises(TryAgainError):
        wake_up_late()
    assert shop.rows() == [("mon", 2)]


def test_another_attempt_at_a_run_does_not_add_its_rows_again(shop: Shop) -> None:
    shop.write(1, [("mon", 1)], "mon", mode="append")
    shop.stage(1, [("mon", 1), ("tue", 2)], attempt="2-b")
    writer = Writer(run_id=1, attempt="2-b", earlier=["1-a"])
    shop.publish(writer, "mon", "tue", mode="append")
    assert shop.rows() == [("mon", 1), ("tue", 2)]
    paths = list(PATHS.values())
    assert shop.storage().published(paths, writer) == paths


def test_rows_that_do_not_fit_the_table_fail_and_leave_the_table_unchanged(shop: Shop) -> None:
    shop.database.execute("CREATE TABLE shop.sales (day text, other int)")
    shop.database.execute("INSERT INTO shop.sales VALUES ('mon', 1)")
    with pytest.raises(StorageError, match="no column 'n'"):
        shop.write(1, [("mon", 2)], "mon")
    shop.database.execute("ALTER TABLE shop.sales ADD n smallint CHECK (n < 5)")
    with pytest.raises(StorageError, match="violates check constraint"):
        shop.write(2, [("mon", 7)], "mon")
    rows = shop.database.execute("SELECT day, other, n FROM shop.sales").fetchall()
    assert rows == [("mon", 1, None)]


def test_a_server_that_does_not_answer_is_tried_again(shop: Shop) -> None:
    writer = shop.stage(1, [])
    shop.uri = "postgres://127.0.0.1:1/x/shop/sales"
    with pytest.raises(TryAgainError):
        shop.publish(writer, "mon")


def test_options_of_the_connection_are_the_users_to_say(shop: Shop) -> None:
    shop.connection["libpq"] = {
        "connect_timeout": 60,
        "options": "-c search_path=shop",
        "application_name": "mine",
    }
    shop.database.execute("CREATE FUNCTION shop.found() RETURNS text RETURN current_schema()")
    shop.database.execute("CREATE TABLE shop.sales (day text, n int, by text DEFAULT shop.found())")
    writer = shop.write(1, [("mon", 1)], "mon")
    assert shop.rows("n, by") == [(1, "shop")]
    with shop.storage()._tables(writer) as session:
        name = session._connection.execute("SHOW application_name").fetchone()
    assert name == ("slicewise 1-1-a 1",), "whoever takes over would not find it"


def test_an_option_that_there_is_not_is_refused_with_its_name(shop: Shop) -> None:
    shop.connection["libpq"] = {"sslmod": "require"}
    with pytest.raises(StorageError, match='invalid connection option "sslmod"'):
        shop.write(1, [("mon", 1)], "mon")


def test_first_publications_of_two_tables_of_a_schema_do_not_wait_for_each_other(
    shop: Shop,
) -> None:
    first, second = shop.stage(1, [("mon", 1)]), shop.stage(2, [("tue", 2)])
    staged = shop.storage().staging(first, partitioned=True)
    publishing = Thread(target=shop.publish, args=(first, "mon"), kwargs={"table": "sales"})
    with shop.database.transaction():
        shop.database.execute(f'LOCK TABLE shop."{staged}" IN ACCESS EXCLUSIVE MODE')
        publishing.start()
        shop.wait_for_locks(1)
        second_thread = Thread(
            target=shop.publish, args=(second, "tue"), kwargs={"table": "returns"}
        )
        second_thread.start()
        second_thread.join(60)
        assert not second_thread.is_alive(), "it waits for the other table's publication"
    publishing.join()
    assert (shop.rows(), shop.rows(table="returns")) == ([("mon", 1)], [("tue", 2)])


def test_the_shared_table_of_a_schema_is_created_once(shop: Shop) -> None:
    writers = {"sales": shop.stage(1, [("mon", 1)]), "returns": shop.stage(2, [("mon", 2)])}
    with ThreadPoolExecutor() as pool:
        with shop.database.transaction():
            shop.database.execute(
                "CREATE TABLE shop._slicewise_published (asset text, partition text, attempt text)"
            )
            publishing = [
                pool.submit(shop.publish, writer, "mon", table=table)
                for table, writer in writers.items()
            ]
            shop.wait_for_locks(2)
        for future in publishing:
            future.result()
    assert (shop.rows(), shop.rows(table="returns")) == ([("mon", 1)], [("mon", 2)])


def test_sessions_that_create_the_shared_table_at_once_all_find_it(shop: Shop) -> None:
    sessions = 6
    meet = Barrier(sessions, timeout=60)

    def make_table(number: int) -> None:
        with Tables(shop.storage().table, shop.connection, f"session{number}") as session:
            for _ in range(40):
                if meet.wait() == 0:
                    shop.database.execute("DROP TABLE IF EXISTS shop._slicewise_published")
                meet.wait()
                session._markers.make_table()

    with ThreadPoolExecutor(sessions) as pool:
        created = [pool.submit(make_table, number) for number in range(sessions)]
    assert [future.exception() for future in created] == [None] * sessions


def test_two_that_publish_at_once_are_done_one_after_the_other(shop: Shop) -> None:
    writers = [shop.stage(run_id, [("mon", run_id), ("tue", run_id)]) for run_id in range(1, 5)]
    with ThreadPoolExecutor() as pool:
        for future in [pool.submit(shop.publish, writer, "mon", "tue") for writer in writers]:
            future.result()
    (first, first_number), (second, second_number) = shop.rows()
    assert (first, second) == ("mon", "tue")
    assert first_number == second_number, "half of each"


def test_staged_tables_of_an_attempt_are_discarded(shop: Shop) -> None:
    shop.write(1, [("mon", 1)], "mon")
    writer, other_writer = shop.stage(2, []), shop.stage(22, [])
    shop.storage().discard(writer)
    shop.storage().discard(writer)
    kept_table = shop.storage().staging(other_writer, partitioned=True)
    assert shop.tables() == {"sales", "_slicewise_published", kept_table}


ASSETS = """
    DAYS = PartitionBySequence(["mon", "tue", "it's"], name="day")

    @asset(uri="{uri}", partition=DAYS, strategy="range", params={{"days": "mon"}})
    def sales(self, spark, context):
        rows = [(day, n, "x") for n, day in enumerate(context["params"]["days"].split(","))]
        return spark.createDataFrame(rows, "day string, n int, at string")

    @asset(uri="{uri}", partition=DAYS, strategy="range")
    def careful(self, spark, context):
        frame = spark.sql("values ('mon', 1), ('tue', -1), ('fri', 2) as rows(day, n)")
        try:
            self.write(frame)
        except RowsError:
            for key in context["partition"].keys:
                of_day = frame.filter(frame.day == key).filter("n > 0")
                self.write(of_day, partition=key)

    @asset(uri="{uri}", partition=DAYS)
    def loud(spark):
        return spark.sql("values ('mon', 1), ('tue', 2) as rows(DAY, n)")

    @asset(partition=DAYS)
    def reads(sales):
        print("read:", sorted(map(tuple, sales.read().collect())))

    @asset.multi(outlets=[Asset("whole", uri="{uri}_whole")], write_mode="append")
    def wholes(spark):
        return {{"whole": spark.sql("select timestamp'2024-01-01 00:00:00' as at, 1.50 as price")}}
"""


@pytest.mark.usefixtures("jdbc_driver")
@pytest.mark.parametrize("engine_runs", ["connect", "local"], indirect=True)
def test_spark_writes_and_reads_by_jdbc(engine_runs: Runs, spark_runs: Runs, shop: Shop) -> None:
    for runs in (engine_runs, spark_runs):
        runs.connections = {shop.server: shop.connection}
        runs.define(ASSETS.format(uri=shop.uri))
    days = ["mon", "tue", "it%27s"]
    outcome = engine_runs.make("sales", days, params={"days": "mon,it's,mon"})
    assert {key: partition["rows"] for key, partition in outcome.staged.items()} == {
        "mon": 2,
        "tue": 0,
        "it%27s": 1,
    }, outcome.log
    again = spark_runs.make("sales", ["tue"], params={"days": "tue"})
    assert again.staged["tue"]["rows"] == 1
    outside = spark_runs.run("sales", ["mon", "tue"], params={"days": "mon,fri"})
    assert (
        "1 row lies outside the run's 2 partitions: the column 'day' holds 'fri'"
        in (outside.failure["error"])
    )
    assert shop.rows() == [("it's", 1), ("mon", 0), ("mon", 2), ("tue", 0)]
    read = engine_runs.run("reads", ["mon"], upstream={"sales": ["mon", "it%27s"]})
    assert "read: [(\"it's\", 1, 'x'), ('mon', 0, 'x'), ('mon', 2, 'x')]\n" in read.log
    for _ in range(2):
        spark_runs.make("wholes")
    assert shop.database.execute("SELECT count(*) FROM shop.sales_whole").fetchone() == (2,)
    report = json.dumps([message for message in read.messages if message["type"] != "log"])
    assert str(shop.connection["password"]) not in report


@pytest.mark.usefixtures("jdbc_driver")
def test_nothing_is_kept_of_rows_that_were_refused(spark_runs: Runs, shop: Shop) -> None:
    spark_runs.connections = {shop.server: shop.connection}
    spark_runs.define(ASSETS.format(uri=shop.uri))
    outcome = spark_runs.make("careful", ["mon", "tue"])
    assert {key: partition["rows"] for key, partition in outcome.staged.items()} == {
        "mon": 1,
        "tue": 0,
    }, outcome.log
    assert shop.rows() == [("mon", 1)]
    spark_runs.run("sales", ["mon", "tue"], params={"days": "mon,fri"})
    loud = spark_runs.run("loud", ["mon"])
    assert "a column 'DAY', and the dimension is called 'day'" in loud.failure["error"]
    assert shop.tables() == {"sales", "_slicewise_published"}

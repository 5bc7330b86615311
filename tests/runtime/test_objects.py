"""Object stores: immutable files and a log, here in a folder that stands in for a bucket.

pyarrow reads the folder like a bucket; Spark reads and writes ``s3a://`` paths by Hadoop's own
overlay of file systems.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import obstore
import pyarrow
import pytest
from pyarrow import parquet

from slicewise.io import StorageLocation, Writer, storage_at
from slicewise.io.files import Files
from slicewise.storage import MissingVersionError, StagingLostError, TryAgainError
from tests.runtime.runs import Runs

DAY = "day=mon"


class Bucket:
    """A bucket with an asset of one day, to which runs publish their staged data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def storage(self, mode: Any) -> Any:
        connection = {"arrow": f"file://{self.folder}"}
        return storage_at(
            StorageLocation(
                uri="s3://lake/a%20b", write_mode=mode, format="json", connection=connection
            )
        )

    def stage(self, run_id: int, attempt: str = "1-a") -> Writer:
        writer = Writer(run_id=run_id, attempt=attempt)
        staging = self.storage("replace").staging(writer, partitioned=True)
        data = self.folder / "a b" / staging / DAY
        data.mkdir(parents=True)
        (data / "part-0.json").write_text(f'{{"run":{run_id}}}\n')
        return writer

    def publish(self, writer: Writer, mode: str) -> Any:
        return self.storage(mode).publish("", [{"path": DAY}], writer)

    def write(self, run_id: int, mode: str, **more: Any) -> Any:
        writer = self.stage(run_id)
        return self.publish(writer, mode)

    def counting(self, version: int | None = None) -> list[str]:
        """Return the attempts whose files a reader of the day is sent to."""
        from slicewise.io.object_attempts import attempt_of_version

        state = self.storage("replace")._state(DAY)
        return list(state.data) if version is None else [attempt_of_version(state, version, DAY)]

    def files(self) -> int:
        return len(list(self.folder.rglob("part-*")))


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    return Bucket(tmp_path / "lake")


def test_each_mode_says_which_files_count(bucket: Bucket) -> None:
    for run_id, mode in enumerate(["append", "append", "replace", "append"], start=1):
        bucket.write(run_id, mode)
    assert bucket.counting() == ["3-1-a", "4-1-a"]
    assert bucket.files() == 2, "what was replaced is still there"
    assert [bucket.write(run_id, "version") for run_id in (5, 6)] == [
        {DAY: {"version": 5}},
        {DAY: {"version": 6}},
    ]
    assert (bucket.counting(), bucket.counting(version=5)) == (["6-1-a"], ["5-1-a"])
    with pytest.raises(MissingVersionError, match="the versions are 5, 6"):
        bucket.counting(version=4)
    bucket.write(7, "replace")
    assert (bucket.counting(), bucket.counting(version=5)) == (["7-1-a"], ["5-1-a"])


@pytest.mark.parametrize("mode", ["replace", "append", "version"])
def test_publishing_again_changes_nothing(bucket: Bucket, mode: str) -> None:
    writer = bucket.stage(1)
    answers = [bucket.publish(writer, mode) for _ in range(3)]
    assert answers == [answers[0]] * 3
    assert bucket.counting() == ["1-1-a"]
    assert bucket.storage(mode).published([DAY, "day=tue"], writer) == [DAY]


@pytest.mark.parametrize("mode", ["replace", "append", "version"])
def test_a_worker_that_begins_after_its_successor_is_told(bucket: Bucket, mode: str) -> None:
    bucket.write(1, mode)
    late = bucket.stage(2)
    pieces = [{"path": DAY}]
    bucket.storage(mode).check("", pieces, replace(late, fence=2))
    with pytest.raises(StagingLostError, match="another worker"):
        bucket.publish(late, mode)
    assert bucket.counting() == ["1-1-a"], "given up, and published all the same"
    bucket.publish(replace(late, fence=3), mode)
    assert bucket.counting() == (["1-1-a", "2-1-a"] if mode == "append" else ["2-1-a"])
    bucket.write(3, mode)
    with suppress(StagingLostError):  # or finds that all is done
        bucket.publish(late, mode)
    assert bucket.counting()[-1] == "3-1-a"


def test_no_key_of_an_asset_without_partitions_has_a_dot_for_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client sends such a key as another key, and the store finds neither."""
    keys: list[str] = []

    def noting(home: Any, name: str, key: Callable[..., str]) -> None:
        real = getattr(home, name)

        def note(*args: Any, **options: Any) -> Any:
            keys.append(key(*args))
            return real(*args, **options)

        monkeypatch.setattr(home, name, note)

    for name in ("put", "names", "delete", "data"):
        noting(Files, name, lambda files, *args: "/".join([files.path, *args[:1]]))
    for name in ("put", "get", "list_with_delimiter", "delete"):
        noting(obstore, name, lambda _, path, *args: path)
    bucket = Bucket(tmp_path / "lake")
    for run_id in (1, 2):
        writer = Writer(run_id=run_id, attempt="1-a")
        staging = bucket.storage("replace").staging(writer, partitioned=False)
        (bucket.folder / "a b" / staging).mkdir(parents=True)
        (bucket.folder / "a b" / staging / "part-0.json").write_text("{}")
        bucket.storage("replace").publish("", [{"path": "."}], writer)
        assert bucket.storage("replace").published(["."], writer) == ["."]
    assert keys
    assert [key for key in keys if "." in key.split("/")] == []


def test_replaced_or_discarded_data_cannot_be_published(bucket: Bucket) -> None:
    late = bucket.stage(1)
    bucket.publish(late, "replace")
    bucket.write(2, "replace")
    with pytest.raises(StagingLostError):
        bucket.publish(late, "replace")
    unwanted = bucket.stage(3)
    bucket.storage("replace").discard(unwanted)
    with pytest.raises(StagingLostError):
        bucket.publish(unwanted, "replace")
    assert bucket.counting() == ["2-1-a"]


def test_discarding_leaves_what_is_published(bucket: Bucket) -> None:
    writer = bucket.stage(1)
    bucket.publish(writer, "replace")
    bucket.storage("replace").discard(writer)
    assert bucket.files() == 1


def test_another_attempt_at_a_run_does_not_add_its_rows_again(bucket: Bucket) -> None:
    bucket.write(1, "append")
    bucket.stage(1, "2-b")
    again = Writer(run_id=1, attempt="2-b", earlier=["1-a"])
    bucket.publish(again, "append")
    assert bucket.counting() == ["1-1-a"]
    assert bucket.storage("append").published([DAY], again) == [DAY]


ASSETS = """
    DAYS = PartitionBySequence(["mon", "a/b", "tue"], name="day")
    COLUMNS = {"n": "int", "t": "string"}

    @asset(uri="s3://lake/sales", format="csv", partition=DAYS, strategy="range", columns=COLUMNS)
    def sales(spark, context):
        rows = [("mon", context["run_id"], "x y")]
        return spark.createDataFrame(rows, "day string, n int, t string")

    @asset(uri="gs://lake/all", write_mode="append")
    def everything(spark, context):
        return spark.sql("select %d as n" % context["run_id"])

    @asset()
    def reads(sales):
        print("sales:", sorted(map(tuple, sales.read().collect())), sales.read().columns)

    @asset()
    def reads_all(everything):
        print("everything:", sorted(row.n for row in everything.read().collect()))

    @asset()
    def reads_sales(sales):
        print("sales:", *map(tuple, sales.read().select("day", "t").orderBy("day").collect()))

    @asset(uri="s3://lake/grows", format="json", write_mode="append", params={"sql": ""})
    def grows(spark, context):
        return spark.sql(context["params"]["sql"])

    @asset()
    def reads_grown(grows):
        print(*map(tuple, grows.read().orderBy("n").collect()))
        grows.read().explain()
"""


@pytest.fixture
def bucket_runs(spark_runs: Runs, tmp_path: Path) -> Runs:
    """Return runs whose buckets, of both stores, are the folder ``bucket``."""
    folder = tmp_path / "bucket"
    folder.mkdir()
    overlay = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"
    local = "org.apache.hadoop.fs.RawLocalFileSystem"
    hadoop = {
        # Spark lowers the names of a reader's options, so that "linkFallback" would not do.
        "fs.viewfs.mounttable.lake.link./sales": f"file://{folder}/sales",
        "fs.viewfs.mounttable.lake.link./all": f"file://{folder}/all",
        "fs.viewfs.mounttable.lake.link./grows": f"file://{folder}/grows",
        "fs.viewfs.overload.scheme.target.file.impl": local,
        # Hadoop's default for s3a is one of the connector's own.
        "mapreduce.outputcommitter.factory.scheme.s3a": (
            "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitterFactory"
        ),
    }
    for scheme, place in (("s3a", "s3://lake"), ("gs", "gcs://lake")):
        overlay_settings = {f"fs.{scheme}.impl": overlay, f"fs.{scheme}.impl.disable.cache": "true"}
        connection = {"arrow": f"file://{folder}", "hadoop": {**hadoop, **overlay_settings}}
        spark_runs.connections = {**spark_runs.connections, place: connection}
    spark_runs.define(ASSETS)
    return spark_runs


def test_spark_writes_and_reads_what_the_log_says(bucket_runs: Runs, tmp_path: Path) -> None:
    keys = ["mon", "a%2Fb"]
    bucket_runs.make("sales", keys)
    latest = bucket_runs.make("sales", keys).request["run_id"]
    assert len(list((tmp_path / "bucket/sales").rglob("part-*"))) == 2
    added = [bucket_runs.make("everything").request["run_id"] for _ in range(2)]
    read = bucket_runs.run("reads", upstream={"sales": keys})
    assert f"sales: [({latest}, 'x y', 'mon')] ['n', 't', 'day']\n" in read.log, read.messages
    read = bucket_runs.run("reads_all", upstream={"everything": [""]})
    assert f"everything: {added}\n" in read.log, read.messages


def test_columns_that_appended_rows_have_more_are_read(bucket_runs: Runs) -> None:
    for sql in ("select 1 as n", "select 2 as n, 'x' as late", "select 3 as n, null as late"):
        bucket_runs.make("grows", params={"sql": sql.replace("null", "cast(null as string)")})
    read = bucket_runs.make("reads_grown", upstream={"grows": [""]})
    assert "(1, None) (2, 'x') (3, None)\n" in read.log
    assert read.log.count("FileScan json ") == 1, "each append is read by itself"


def test_rows_are_added_to_those_that_something_else_has_written(
    bucket_runs: Runs, tmp_path: Path
) -> None:
    home = tmp_path / "bucket/all"
    home.mkdir(parents=True)
    parquet.write_table(pyarrow.table({"n": [0]}), home / "part-0.parquet")
    added = [bucket_runs.make("everything").request["run_id"] for _ in range(2)]
    read = bucket_runs.make("reads_all", upstream={"everything": [""]})
    assert f"everything: {[0, *added]}\n" in read.log


def test_days_that_something_else_has_written_are_read_beside_those_of_runs(
    bucket_runs: Runs, tmp_path: Path
) -> None:
    home = tmp_path / "bucket/sales/day=a%2Fb"
    home.mkdir(parents=True)
    (home / "part-0.csv").write_text("n,t\n7,y\n")
    bucket_runs.make("sales", ["mon"])
    read = bucket_runs.run("reads_sales", upstream={"sales": ["a%2Fb", "mon"]})
    assert "sales: ('a/b', 'y') ('mon', 'x y')\n" in read.log, read.messages
    missing = bucket_runs.run("reads_sales", upstream={"sales": ["a%2Fb", "mon", "tue"]})
    assert "PATH_NOT_FOUND" in missing.failure["error"]
    assert "day=tue" in missing.failure["error"]


def test_a_store_that_does_not_answer_is_named_and_asked_again() -> None:
    closed_port = "s3://key:secret@lake?endpoint_override=127.0.0.1:9&scheme=http&region=us-east-1"
    storage = storage_at(
        StorageLocation(
            uri="s3://lake/a",
            write_mode="replace",
            format="json",
            connection={"arrow": closed_port},
        )
    )
    with pytest.raises(TryAgainError, match=r"s3://lake/a: .*127\.0\.0\.1") as refused:
        storage.published([DAY], Writer(run_id=1, attempt="1-a"))
    assert "secret" not in str(refused.value)

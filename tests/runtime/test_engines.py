"""Both engines make the same data of the same asset.

One engine is a server that runs share, the other a Spark application for each run, in one process
and on a cluster.
"""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from slicewise.runner.parent_client import RunnerProcess, WarmParent
from tests.processes import is_alive
from tests.runtime.cluster import Cluster, submission
from tests.runtime.runs import Runs
from tests.waiting import wait_until

# Each run of the engine `submit` takes seconds to start, so that one says much.
ASSETS = """
    from pyspark.sql import functions as F

    DAYS = PartitionByInterval("@daily", start="2013-01-01", end="2013-01-05")
    PLACES = PartitionBySequence(["JFK", "a/b", "02"])
    WEATHER = PartitionByProduct({"date": DAYS, "airport": PLACES})

    @asset(uri=f"{LAKE}/my hours", partition=DAYS, strategy="range")
    def hours(self, spark, context):
        for text in (
            "values ('2013-01-09', 1), (null, 2) as rows(partition, n)",
            "select 1 n", "select 1.5 partition, 1 n",
        ):
            try:
                self.write(spark.sql(text))
            except ValueError as error:
                print("refused:", error)
        first = int(context["partition"].interval.start.timestamp())
        at = F.timestamp_seconds(F.col("id"))
        frame = spark.range(first, first + 36 * 3600, 3600).select(
            at.alias("at"), partition_column(at, self).alias("partition"))
        print("frames:", frame.count(), spark.conf.get("spark.sql.session.timeZone"))
        return frame

    @asset(uri=f"{LAKE}/weather", partition=WEATHER)
    def weather(self, spark, hours, context):
        frame = hours.read()
        print("read:", frame.count(), dict(frame.dtypes), len(hours.partitions))
        print("files:", *frame.inputFiles())
        rows = [("2013-01-02", place, frame.count()) for place in ("a/b", "02", "02")]
        return spark.createDataFrame(rows, "date string, airport string, hours int")
"""


def rows_below(folder: Path) -> dict[str, int]:
    """Count the rows by folder."""
    counts: dict[str, int] = {}
    for file in folder.rglob("*.parquet"):
        place = file.parent.relative_to(folder).as_posix()
        counts[place] = counts.get(place, 0) + parquet.read_metadata(file).num_rows
    return counts


# In one process: test_formats and test_postgres.
@pytest.mark.parametrize("engine_runs", ["connect", "cluster"], indirect=True)
def test_every_engine_writes_every_row_into_its_partition(engine_runs: Runs) -> None:
    engine_runs.define(ASSETS)
    days = ["2013-01-01", "2013-01-02", "2013-01-03"]
    outcome = engine_runs.make("hours", days)
    assert outcome.types == ["started", "spark", "spark", "staged", "finished", "exited"]
    outside, missing, decimal = [
        row for row in outcome.log.splitlines() if row.startswith("refused:")
    ]
    assert "2013-01-09" in outside
    assert "is null" in outside
    assert "no column 'partition'" in missing
    assert "decimal" in decimal
    assert "frames: 36 UTC\n" in outcome.log
    assert {key: partition["rows"] for key, partition in outcome.staged.items()} == dict(
        zip(days, (24, 12, 0), strict=True)
    )
    root = engine_runs.lake / "my hours"
    assert rows_below(root) == {
        f"partition={day}": rows for day, rows in zip(days, (24, 12, 0), strict=True)
    }
    marker = f"_slicewise-{outcome.request['run_id']}-1-0123456789ab"
    assert all((root / f"partition={day}" / marker).exists() for day in days)


@pytest.mark.parametrize("engine_runs", ["connect", "cluster"], indirect=True)
def test_every_engine_reads_the_partitions_it_is_given_and_no_others(engine_runs: Runs) -> None:
    engine_runs.define(ASSETS)
    for day, rows in (("2013-01-02", 12), ("2013-01-03", 1)):
        folder = engine_runs.lake / "my hours" / f"partition={day}"
        folder.mkdir(parents=True)
        parquet.write_table(pyarrow.table({"at": list(range(rows))}), folder / "part.parquet")
    keys = ["2013-01-02|a%2Fb", "2013-01-02|02"]
    read = engine_runs.make("weather", keys, upstream={"hours": ["2013-01-02"]})
    assert "read: 12 {'at': 'bigint', 'partition': 'string'} 1\n" in read.log
    (files,) = [line for line in read.log.splitlines() if line.startswith("files:")]
    assert len(files.split()) == 2
    assert "/partition=2013-01-02/" in files
    assert rows_below(engine_runs.lake / "weather") == {
        "date=2013-01-02/airport=a%2Fb": 1,
        "date=2013-01-02/airport=02": 2,
    }


def test_a_run_has_an_application_of_its_own(submitted_runs: Runs) -> None:
    submitted_runs.bundle.mkdir()
    (submitted_runs.bundle / "places.csv").write_text("JFK\nLGA\n")
    submitted_runs.define("def double(number): return 2 * number", file="helpers.py")
    submitted_runs.define("""
        from pathlib import Path
        from helpers import double

        def triple(number):
            return 3 * number

        @asset(engine="submit", spark_conf={"spark.executor.memory": "600m", "spark.x": "a b,c"})
        def own(spark, context):
            numbers = spark.sparkContext.parallelize([1, 2, 3], 1)
            print("sum:", numbers.map(double).map(triple).sum())  # elsewhere
            conf = spark.sparkContext.getConf()
            print("conf:", conf.get("spark.executor.memory"), conf.get("spark.x"))
            print("lines:", spark.read.text("places.csv").count(), Path("places.csv").exists())
            print("environment:", *os.environ)
            print("past:", *context["partition"].iter_past_partitions())
            print("caf\u00e9", file=sys.stderr)
    """)
    questions: list[dict[str, Any]] = []

    def answer(question: dict[str, Any]) -> dict[str, Any]:
        questions.append(question)
        return {"keys": [], "next": None}

    submitted_runs.answer = answer
    outcome = submitted_runs.run("own")
    assert outcome.types == ["started", "spark", "spark", "ask", "finished", "exited"], outcome.log
    _, opened = outcome.of_type("spark")
    assert opened["application_id"].startswith("app-")
    assert opened["ui"].startswith("http://")
    assert "sum: 36\n" in outcome.log
    assert "conf: 600m a b,c\n" in outcome.log
    assert "lines: 2 True\n" in outcome.log
    assert "café\n" in outcome.log
    (environment,) = [row for row in outcome.log.splitlines() if row.startswith("environment:")]
    assert not {"SECRET_KEY", "DATABASE_URL", "REDIS_URL"} & set(environment.split())
    assert "TOKEN" not in environment
    assert not list((submitted_runs.folder / "submitted").iterdir())


def test_killing_a_run_or_its_parent_ends_all_its_processes_and_its_application(
    submitted_runs: Runs, cluster: Cluster, tmp_path: Path
) -> None:
    submitted_runs.define("""
        @asset(engine="submit")
        def slow(spark):
            print("driver:", os.getpid(), os.getppid(), flush=True)
            spark.sparkContext.parallelize([1], 1).foreach(lambda _: time.sleep(300))
    """)
    env = {"PATH": os.environ["PATH"]}
    doomed = WarmParent(env=env, cache=tmp_path / "cache")
    # No ping is sent while the two applications start.
    requests = [submitted_runs.request("slow", watchdog=600) for _ in range(2)]
    first = submitted_runs.parent.launch(requests[0])
    second = doomed.launch(requests[1])
    try:
        streams = [runner.messages(60) for runner in (first, second)]
        pids = [*_processes_of(first, streams[0]), *_processes_of(second, streams[1])]
        names = {request["spark"]["name"] for request in requests}
        assert names <= cluster.applications()
        assert all(is_alive(pid) for pid in pids)
        first.kill()
        assert doomed.pid is not None
        os.kill(doomed.pid, signal.SIGKILL)
        for rest in streams:
            assert list(rest)[-1]["signal"] == signal.SIGKILL
        assert wait_until(lambda: not any(is_alive(pid) for pid in pids))
        assert wait_until(lambda: not names & cluster.applications())
    finally:
        doomed.close()


def test_a_submission_that_does_not_come_about_is_a_failure_of_the_platform(
    warm_parent: WarmParent, tmp_path: Path
) -> None:
    facts = submission("local[1]")
    runs = Runs(warm_parent, tmp_path, submit={**facts, "spark_home": "/nowhere"})
    runs.define("@asset(engine='submit')\ndef own(): pass")
    outcome = runs.run("own")
    assert outcome.types == ["started", "failed", "exited"]
    assert outcome.failure["kind"] == "platform"
    assert "spark-submit ended with status 127" in outcome.failure["error"]
    assert "/nowhere/bin/spark-submit" in outcome.log


def test_options_for_java_of_the_environment_are_added_to_those_of_a_submission(
    warm_parent: WarmParent, tmp_path: Path
) -> None:
    program = tmp_path / "spark" / "bin" / "spark-submit"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "options: $SPARK_SUBMIT_OPTS"\n')
    program.chmod(0o755)
    facts = submission("local[1]")
    env = {**facts["env"], "SPARK_SUBMIT_OPTS": "-Dmine=1"}
    spark_home = str(program.parent.parent)
    runs = Runs(warm_parent, tmp_path, submit={**facts, "spark_home": spark_home, "env": env})
    runs.define("@asset(engine='submit')\ndef own(): pass")
    log = runs.run("own").log
    assert 'options: -Dmine=1 "-Djava.io.tmpdir=' in log
    assert "-XX:-UsePerfData" in log


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("spark.sparkContext", 'engine="submit"'),
        ("spark.range(3).rdd", 'engine="submit"'),
        ("spark._jvm", 'engine="submit"'),
        ("spark.range(3)._jdf", 'engine="submit"'),
        ("from pyspark import SparkContext; SparkContext.getOrCreate()", 'engine="submit"'),
        ("spark.conf.set('spark.executor.memory', '3g')", 'engine="submit"'),
        ("spark.read.csv('data/places.csv').count()", "relative"),
        ("spark.read.parquet('/no/such/folder').count()", "write full paths"),
    ],
)
def test_an_error_about_a_feature_of_the_other_engine_names_that_engine(
    spark_runs: Runs, statement: str, message: str
) -> None:
    spark_runs.define(f"@asset()\ndef wants(spark):\n    {statement}")
    failure = spark_runs.run("wants").failure
    assert message in failure["error"]
    assert message in failure["traceback"]
    assert failure["kind"] == "code"


def _processes_of(runner: RunnerProcess, messages: Iterator[dict[str, Any]]) -> list[int]:
    """Return the processes of a runner, its JVM and its driver, once the driver is at work."""
    log = ""
    for message in messages:
        assert message["type"] != "exited", log
        log += message["text"] if message["type"] == "log" else ""
        if match := re.search(r"driver: (\d+) (\d+)\n", log):
            assert runner.pid is not None
            return [runner.pid, *map(int, match.groups())]
    raise AssertionError("the driver has not begun")

"""Spark sessions of runs: opened on request, set up, interrupted, lost."""

import time
import uuid
from pathlib import Path

import pytest

from slicewise import spark
from slicewise.runner import parent_client
from slicewise.runner.parent_client import WarmParent
from tests.runtime.runs import Runs


@pytest.fixture
def patient_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give interrupts the time that they take on a busy machine."""
    monkeypatch.setattr(parent_client, "INTERRUPT_TIMEOUT_SECONDS", 120.0)


def test_spark_is_not_opened_for_a_function_that_does_not_ask(spark_runs: Runs) -> None:
    spark_runs.define("@asset()\ndef quiet(self, context): pass")
    assert spark_runs.run("quiet").types == ["started", "finished", "exited"]


def test_a_session_conf_of_an_asset_is_set_and_a_static_one_refused(spark_runs: Runs) -> None:
    spark_runs.define("""
        @asset(spark_conf={"spark.sql.shuffle.partitions": "3"})
        def tuned(spark):
            print(spark.conf.get("spark.sql.shuffle.partitions"),
                  spark.conf.get("spark.sql.session.timeZone"))
        @asset(spark_conf={"spark.executor.memory": "3g"})
        def refused(spark):
            pass
    """)
    assert spark_runs.run("tuned").log == "3 UTC\n"
    assert 'engine="submit"' in spark_runs.run("refused").failure["error"]


def test_code_that_stops_its_session_has_it_all_the_same(spark_runs: Runs) -> None:
    spark_runs.define("""
        @asset(uri=f"{LAKE}/stopped")
        def stopped(spark):
            frame = spark.range(3)
            spark.stop()
            return frame
    """)
    outcome = spark_runs.run("stopped")
    assert outcome.log.startswith("spark.stop() has stopped nothing")
    assert outcome.types[-2:] == ["finished", "exited"]


def test_an_error_of_spark_is_the_codes_failure(spark_runs: Runs) -> None:
    spark_runs.define("""
        @asset()
        def wrong(spark):
            spark.sql("select no_such_column").collect()
    """)
    failure = spark_runs.run("wrong").failure
    assert failure["kind"] == "code"
    assert "no_such_column" in failure["traceback"]
    assert 'File "assets.py"' in failure["traceback"].splitlines()[1]


def test_a_server_that_is_not_there_is_a_failure_of_the_platform(
    spark_runs: Runs, warm_parent: WarmParent, tmp_path: Path
) -> None:
    unreachable = Runs(warm_parent, tmp_path / "other", remote="sc://localhost:1")
    (tmp_path / "other").mkdir()
    unreachable.define("@asset()\ndef asks(spark): spark.range(1).count()")
    started = time.monotonic()
    assert unreachable.run("asks").failure["kind"] == "platform"
    # pyspark by itself would try for ten minutes.
    assert time.monotonic() - started < 300


@pytest.mark.usefixtures("patient_interrupts")
def test_interrupting_a_session_ends_the_spark_work_of_a_killed_run(
    spark_runs: Runs, spark_remote: str
) -> None:
    spark_runs.define("""
        @asset(uri=f"{LAKE}/slow")
        def slow(spark):
            from pyspark.sql import functions as F
            sleep = F.udf(lambda n: __import__("time").sleep(0.5) or n, "long")
            frame = spark.range(0, 2400, 1, 2).select(F.expr("java_method('java.lang.Thread',"
                "'sleep', 500L)"), "id")
            print("begins", flush=True)
            return frame
    """)
    request = spark_runs.request("slow")
    runner = spark_runs.parent.launch(request)
    log = ""
    for message in runner.messages(5):
        runner.ping()
        log += message.get("text", "")
        # Spark has begun to write by the time that the runner has been silent for 5 s.
        if message["type"] == "idle" and "begins" in log:
            break
    runner.kill()
    started = time.monotonic()
    session_id = request["spark"]["session_id"]
    spark_runs.parent.interrupt(spark_remote, session_id)
    # The work would take 600 s more.
    assert time.monotonic() - started < 200
    staging = list(spark_runs.lake.glob("_slicewise-staging-*"))
    time.sleep(1.5)
    assert not [path for folder in staging for path in folder.glob("*.parquet")]
    with pytest.raises(Exception, match="SESSION"):
        spark.open_session(spark_remote, session_id).range(1).count()


@pytest.mark.usefixtures("patient_interrupts")
def test_a_session_that_was_never_opened_can_be_interrupted(
    spark_runs: Runs, spark_remote: str
) -> None:
    session_id = str(uuid.uuid4())
    for _ in range(2):
        spark_runs.parent.interrupt(spark_remote, session_id)
    assert spark_runs.parent.is_alive()


def test_a_session_that_cannot_be_opened_does_not_stay_behind(spark_remote: str) -> None:
    session_id = str(uuid.uuid4())
    with pytest.raises(ValueError, match="submit"):
        spark.open_session(spark_remote, session_id, conf={"spark.executor.memory": "3g"})
    with pytest.raises(Exception, match="SESSION_CLOSED"):
        spark.open_session(spark_remote, session_id)
    later = spark.open_session(spark_remote, str(uuid.uuid4()))
    try:
        # pyspark asks the active session of some things, whichever a column belongs to.
        assert later.range(2).where(spark.functions().col("id") > 0).count() == 1
    finally:
        spark.close_session(later)


@pytest.mark.parametrize("engine_runs", ["connect", "local"], indirect=True)
def test_python_workers_of_spark_import_no_package_of_the_server(engine_runs: Runs) -> None:
    engine_runs.define("""
        @asset()
        def curious(spark):
            from pyspark.sql.functions import udf
            @udf("string")
            def names_found(_):
                from importlib.util import find_spec
                names = ("slicewise", "slicewise_server", "assets_app", "manage", "tests")
                return " ".join(name for name in names if find_spec(name))
            print("found:", spark.range(1).select(names_found("id")).first()[0])
    """)
    log = engine_runs.run("curious").log
    assert [line for line in log.splitlines() if "found:" in line] == ["found: slicewise"]

"""The same work on Spark without Slicewise: ``python -m bench.bare`` reads jobs from lines.

The process imports pyspark once and forks a process for each job, which opens a Spark Connect
session, reads, aggregates, writes, and releases the session: the least cost of isolated runs on one
server.
"""

import json
import os
import shutil
import sys
import traceback
import uuid
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

_PRELOADED = ("pyspark.sql.connect.session", "pyspark.sql.connect.functions", "pyarrow.parquet")


def main() -> None:
    """Read jobs as JSON lines, and answer each with the duration in seconds."""
    for name in _PRELOADED:
        import_module(name)
    remote, lake = os.environ["SPARK_REMOTE"], Path(os.environ["LAKE"])
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(_timed(json.loads(line), remote, lake)), flush=True)


def _timed(job: dict[str, Any], remote: str, lake: Path) -> float:
    target = lake / "bare"
    shutil.rmtree(target, ignore_errors=True)
    works: list[Callable[[], None]]
    if job["job"] == "each day":
        works = [lambda day=day: _one_day(remote, lake, target, day) for day in job["days"]]  # type: ignore[misc]
    else:
        works = [lambda: _all_days(remote, lake, target)]
    began = perf_counter()
    _fork_each(works, int(job["at_once"]))
    return perf_counter() - began


def _one_day(remote: str, lake: Path, target: Path, day: str) -> None:
    spark = _session(remote)
    source = f"file://{lake}/raw_flights"
    flights = spark.read.option("basePath", source).parquet(f"{source}/date={day}")
    _report(flights).drop("date").write.parquet(f"file://{target}/date={day}")
    spark.stop()


def _all_days(remote: str, lake: Path, target: Path) -> None:
    spark = _session(remote)
    flights = spark.read.parquet(f"file://{lake}/raw_flights")
    _report(flights).write.partitionBy("date").parquet(f"file://{target}")
    spark.stop()


def _report(flights: Any) -> Any:
    report = flights.groupBy("date").agg({"*": "count", "dep_delay": "avg", "arr_delay": "avg"})
    return report.toDF("date", "flights", "mean_departure_delay", "mean_arrival_delay")


def _session(remote: str) -> Any:
    from pyspark.sql.connect.session import SparkSession

    return SparkSession(connection=f"{remote};user_id=bare;session_id={uuid.uuid4()}")


def _fork_each(works: Iterable[Callable[[], None]], at_once: int) -> None:
    running = 0
    for work in works:
        if running == at_once:
            _wait_for_one()
            running -= 1
        if os.fork() == 0:
            _run(work)
        running += 1
    for _ in range(running):
        _wait_for_one()


def _run(work: Callable[[], None]) -> None:
    status = 1
    try:
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _wait_for_one() -> None:
    _, status = os.wait()
    if status != 0:
        raise SystemExit(f"a bare job ended with status {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    main()

"""An archive of Spark's classes, which the Javas of the tests share (class data sharing).

A Spark server reads and verifies some 20,000 classes until its first job has ended, which takes
half of its processor time; the tests start dozens. `python -m tests.spark_classes` creates the
archive, which takes most of a minute, in the folder of the virtual environment; `make test` does so
beside the first tests. A Java without the archive, or with an archive of other classes, reads the
classes itself.
"""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from slicewise_server.stack import machine
from slicewise_server.stack.process import scrubbed
from slicewise_server.stack.pytest_plugin import BRIEF_JAVA, SPARK_CLASSES
from slicewise_server.stack.services import Services


def start() -> "subprocess.Popen[bytes] | None":
    """Start a process that creates the archive; return None if there is one, or can be none."""
    if SPARK_CLASSES.exists() or not os.access(SPARK_CLASSES.parent, os.W_OK):
        return None
    # Last, since the question starts a Java.
    if machine.find_java(os.environ) is None:
        return None
    project = Path(__file__).resolve().parent.parent
    command = [sys.executable, "-m", "tests.spark_classes"]
    # Ctrl-C ends the tests, which end the process.
    return subprocess.Popen(command, cwd=project, start_new_session=True)


def create(archive: Path) -> None:
    """Create the archive from the classes that a Spark server loads for some jobs."""
    with tempfile.TemporaryDirectory(prefix="slicewise-classes-") as name:
        folder = Path(name)
        names = folder / "names"
        options = f'{BRIEF_JAVA} "-XX:DumpLoadedClassList={names}"'
        env = {"SLICEWISE_RUNNER_ENV": "SPARK_SUBMIT_OPTS", "SPARK_SUBMIT_OPTS": options}
        services = Services(folder / "data", env={**scrubbed(env), **env})
        try:
            services.start(["spark"])
            java, classes = _java_and_classes(services.pid_of("spark"))
            _use(services.environment()["SPARK_REMOTE"], folder / "table")
        finally:
            services.stop()
        # Beside the archive, so that other processes find a whole archive or none.
        new = archive.with_name(f"{archive.name}.{folder.name}")
        try:
            command = [java, *BRIEF_JAVA.split(), "-Xshare:dump", "-Xlog:disable", "-cp", classes]
            command += [f"-XX:SharedClassListFile={names}", f"-XX:SharedArchiveFile={new}"]
            subprocess.run(command, check=True)
            new.chmod(0o644)
            new.replace(archive)
        finally:
            new.unlink(missing_ok=True)
    for earlier in archive.parent.glob("spark-*.jsa*"):
        if earlier != archive:
            earlier.unlink(missing_ok=True)


def _java_and_classes(pid: int) -> tuple[str, str]:
    """Return the program and the class path of a process of Java."""
    arguments = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return arguments[0], arguments[arguments.index("-cp") + 1]


def _use(remote: str, table: Path) -> None:
    """Let a Spark server write, read and aggregate a table, as the tests do."""
    # Not above: pyspark takes a second, and most processes of the tests only look for the archive.
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote(remote).getOrCreate()
    rows = [(day, number) for day in ("2013-01-01", "2013-01-02") for number in range(3)]
    frame = spark.createDataFrame(rows, "day string, number int")
    frame.write.partitionBy("day").parquet(str(table))
    spark.read.parquet(str(table)).groupBy("day").sum("number").orderBy("day").collect()
    spark.sql("SELECT date_trunc('day', timestamp '2013-01-01 10:00') AS day").toPandas()
    spark.stop()


def _end(number: int, _: object) -> None:
    """End with the server, once: the tests may end before the archive is created."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(1)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    create(SPARK_CLASSES)

"""Causes of failed writes: Spark's message names the target, its server's trace the cause."""

import pytest
from pyspark.errors.exceptions.connect import SparkException

from slicewise.texts.spark_advice import write_cause

TRACE = """org.apache.spark.SparkException
\tat org.apache.spark.sql.Writer.write(Writer.scala:1)
Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device
\tat java.io.FileOutputStream.write(FileOutputStream.java:1)
Caused by: java.io.IOException: No space left on device"""


def failure(condition: str, trace: str | None) -> SparkException:
    return SparkException(
        "it went wrong", errorClass=condition, messageParameters={}, server_stacktrace=trace
    )


def test_the_innermost_cause_of_a_write_that_failed_is_told_wherever_it_is_wrapped() -> None:
    outer = RuntimeError("of no use")
    outer.__cause__ = failure("TASK_WRITE_FAILED", TRACE)
    assert write_cause(outer) == "Caused by: java.io.IOException: No space left on device"


@pytest.mark.parametrize(
    "error",
    [
        ValueError("of the code"),
        failure("DIVIDE_BY_ZERO", TRACE),
        failure("TASK_WRITE_FAILED", None),
        failure("TASK_WRITE_FAILED", "org.apache.spark.SparkException"),
    ],
)
def test_of_other_errors_and_without_a_trace_nothing_is_told(error: BaseException) -> None:
    assert write_cause(error) is None

"""Assets that work for a while, leaving marks."""

import time
from datetime import date

from marks import HERE, marked, take_time

from slicewise import PartitionByInterval, asset, partition_column

DAILY = PartitionByInterval("@daily", start=date(2024, 1, 1), end=date(2024, 3, 1))


def keep_busy(spark, seconds):
    """Run a job on Spark that takes so long, and no processor time."""
    sleep = f"reflect('java.lang.Thread', 'sleep', {round(seconds * 1000)}L)"
    spark.range(0, 1, 1, 1).selectExpr(sleep).collect()


@asset(uri=HERE / "steady", partition=DAILY, params={"seconds": 1.0, "until": "", "said": "first"})
def steady(self, spark, context):
    """Takes its time, then writes the param `said` and the attempt."""
    with marked(context):
        take_time(context["params"])
    text, attempt = context["params"]["said"], context["attempt"]
    rows = [(key.start, text, attempt) for key in self.partitions]
    frame = spark.createDataFrame(rows, "at timestamp, said string, n int")
    return frame.withColumn("partition", partition_column("at", self))


@asset(
    uri=HERE / "ranged", partition=DAILY, strategy="range", params={"said": "first", "seconds": 0.1}
)
def ranged(self, spark, context):
    """Several days in one run, with work on Spark, which takes so many seconds the first time."""
    rows = [(key.start, context["params"]["said"]) for key in self.partitions]
    with marked(context):
        frame = spark.createDataFrame(rows, "at timestamp, said string")
        keep_busy(spark, context["params"]["seconds"] if context["attempt"] == 1 else 0.1)
    return frame.withColumn("partition", partition_column("at", self))


@asset(
    uri=HERE / "lasting",
    partition=DAILY,
    strategy="range",
    params={"seconds": 1.0, "every": 0.0, "said": "first"},
)
def lasting(self, spark, context):
    """Is at work for long, and prints every so many seconds, or nothing."""
    params = context["params"]
    end, every = time.monotonic() + params["seconds"], params["every"]
    with marked(context):
        line = 0
        while time.monotonic() < end:
            time.sleep(every or 1.0)
            line += 1
            if every:
                print("line", line, flush=True)
    rows = [(key.start, params["said"]) for key in self.partitions]
    frame = spark.createDataFrame(rows, "at timestamp, said string")
    return frame.withColumn("partition", partition_column("at", self))


@asset(uri=HERE / "counting")
def counting(spark, context):
    """Keeps Spark busy for longer than any test waits, the first time."""
    with marked(context):
        keep_busy(spark, 600 if context["attempt"] == 1 else 0.1)
    return spark.sql(f"SELECT {context['attempt']} AS n")


@asset(partition=DAILY, retries=1)
def failing(context):
    """Fails each time."""
    with marked(context):
        pass
    raise ValueError("the airport is closed")

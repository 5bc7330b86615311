"""Assets that work for a while, leaving marks."""

import time
from datetime import date

from marks import HERE, marked

from slicewise import PartitionByInterval, asset, partition_column

DAILY = PartitionByInterval("@daily", start=date(2024, 1, 1), end=date(2024, 3, 1))


@asset(uri=HERE / "steady", partition=DAILY, params={"seconds": 1.0, "said": "first"})
def steady(spark, context):
    """Takes its time, then says who it was."""
    with marked(context):
        time.sleep(context["params"]["seconds"])
    return spark.sql(f"SELECT '{context['params']['said']}' AS said, {context['attempt']} AS n")


@asset(uri=HERE / "ranged", partition=DAILY, strategy="range", params={"said": "first"})
def ranged(self, spark, context):
    """Several days in one run, with some seconds of work on Spark."""
    rows = [(key.start, context["params"]["said"]) for key in self.partitions]
    with marked(context):
        frame = spark.createDataFrame(rows, "at timestamp, said string")
        busy = spark.range(0, 3 * 10**8, 1, 2).selectExpr("sum(id * id % 7) AS total")
        frame = frame.crossJoin(busy)
        frame = frame.withColumn("partition", partition_column("at", self))
        frame.count()
    return frame


@asset(uri=HERE / "counting")
def counting(spark, context):
    """Keeps Spark busy for longer than any test waits, the first time."""
    with marked(context):
        numbers = 10**13 if context["attempt"] == 1 else 10
        spark.range(0, numbers, 1, 1).selectExpr("sum(id * id % 7) AS total").collect()
    return spark.sql(f"SELECT {context['attempt']} AS n")

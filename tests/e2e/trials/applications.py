"""Assets whose runs have a Spark application each."""

import os
import time

from places import DAILY, HERE

from slicewise import asset, partition_column

SMALL = {"spark.driver.memory": "512m"}


@asset(uri=HERE / "alone", partition=DAILY, strategy="range", engine="submit", spark_conf=SMALL)
def alone(self, spark):
    """Two rows for each day, by way of an RDD."""
    days = [(key.start, number) for key in self.partitions for number in (1, 2)]
    print("driver", os.getpid(), "of", spark.sparkContext.appName, flush=True)
    frame = spark.createDataFrame(spark.sparkContext.parallelize(days, 1), "at timestamp, n int")
    return frame.withColumn("partition", partition_column("at", self))


@asset(engine="submit", spark_conf=SMALL)
def idles(spark):
    """Never ends."""
    print("driver", os.getpid(), "of", spark.sparkContext.appName, flush=True)
    spark.sparkContext.parallelize([1], 1).foreach(lambda _: time.sleep(600))

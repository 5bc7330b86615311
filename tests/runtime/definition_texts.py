"""Texts of definition files that several test modules load."""

HOURS_BY_DAY = """
    DAYS = PartitionByInterval("@daily", start="2013-01-01", end="2013-01-05")
    @asset(uri=f"{LAKE}/hours", partition=DAYS, strategy="range")
    def hours(spark, context):
        from pyspark.sql import functions as F
        first = context["partition"].interval.start.timestamp()
        last = context["partition"].interval.end.timestamp()
        at = F.timestamp_seconds(F.col("id"))
        return spark.range(int(first), int(last), 3600).select(at.alias("at"),
            partition_column(at, context["asset"]).alias("partition"))
"""

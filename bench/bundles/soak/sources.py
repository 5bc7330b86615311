"""Assets that the clock makes."""

from clock import DAILY, DAY, HERE, HOUR, HOURLY, HOURLY_BY_SHOP, SHOPS, TOPICS
from making import begin, rows_of, write_each

from slicewise import PartitionByInterval, asset


@asset(uri=HERE / "clicks", partition=HOURLY, schedule=HOUR)
def clicks(spark, context):
    """Hour by hour."""
    begin(context, "clicks")
    return rows_of(spark, context, 5)


@asset(uri=HERE / "sales", partition=HOURLY_BY_SHOP, schedule=HOUR, strategy="range")
def sales(self, spark, context):
    """Each shop's, hour by hour, in one run."""
    begin(context, "sales")
    write_each(self, spark, context)


@asset(uri=HERE / "late", partition=DAILY, schedule=HOUR)
def late(spark, context):
    """Days, looked for each hour."""
    begin(context, "late")
    return rows_of(spark, context)


@asset(uri=HERE / "batch", partition=HOURLY, schedule=DAY, strategy="range")
def batch(self, spark, context):
    """The hours of a day at once."""
    begin(context, "batch")
    write_each(self, spark, context)


@asset(uri=HERE / "minutes", partition=PartitionByInterval("* * * * *"), schedule="* * * * *")
def minutes(spark, context):
    """By a cron text, minute by minute."""
    begin(context, "minutes")
    return rows_of(spark, context)


@asset(uri=HERE / "shops", partition=SHOPS, schedule=HOUR * 3, strategy="range")
def shops(self, spark, context):
    """All segments at each tick."""
    begin(context, "shops")
    write_each(self, spark, context)


@asset(uri=HERE / "prices", schedule=HOUR * 2)
def prices(spark, context):
    """Not partitioned: made as a whole at each tick."""
    begin(context, "prices")
    return rows_of(spark, context, 3)


@asset(uri=HERE / "talk", partition=TOPICS, schedule=DAY)
def talk(self, spark, context):
    """A run finds the topics: one that is always there, and one of this hour."""
    begin(context, "talk")
    found = ["always", f"number {context['run_id']}"]
    for topic in context["partition"].keys or found:
        self.write(rows_of(spark, context), partition=topic)


@asset(uri=HERE / "archive", partition=PartitionByInterval("@daily", start="2024-01-01"))
def archive(spark, context):
    """Days of the past, which a backfill makes."""
    begin(context, "archive")
    return rows_of(spark, context)

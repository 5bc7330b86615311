"""Assets that follow others, layer after layer."""

from clock import DAILY, DAILY_BY_SHOP, HERE, HOURLY, MONTHLY, SHOPS, TOPICS
from making import begin, rows_of, write_each
from sources import clicks, late, prices, sales, shops, talk

from slicewise import Asset, Offset, asset


@asset(uri=HERE / "days", partition=DAILY, schedule=clicks)
def days(clicks, context):
    """Three hours make a day."""
    begin(context, "days")
    return clicks.read().selectExpr("max(run) AS upstream", f"{context['run_id']}L AS run")


@asset(uri=HERE / "months", partition=MONTHLY, schedule=days)
def months(days, context):
    """Two days make a month."""
    begin(context, "months")
    return days.read().selectExpr("max(run) AS upstream", f"{context['run_id']}L AS run")


@asset(uri=HERE / "month_hours", partition=HOURLY, schedule=months, strategy="range")
def month_hours(self, spark, context):
    """A month makes its six hours due."""
    begin(context, "month_hours")
    write_each(self, spark, context)


@asset(uri=HERE / "shop_days", partition=DAILY_BY_SHOP, schedule=sales, strategy="range")
def shop_days(self, spark, context):
    """Days of each shop."""
    begin(context, "shop_days")
    write_each(self, spark, context)


@asset(uri=HERE / "shop_report", partition=SHOPS, schedule=shops, strategy="range")
def shop_report(self, spark, context):
    """Segment by segment."""
    begin(context, "shop_report")
    write_each(self, spark, context)


@asset.multi(
    outlets=[
        Asset("to_learn_from", uri=HERE / "to_learn_from"),
        Asset("to_test_with", uri=HERE / "to_test_with"),
    ],
    partition=DAILY,
    schedule=days,
)
def split(days, context):
    """Two assets by one function."""
    begin(context, "split")
    report = days.read().selectExpr(f"{context['run_id']}L AS run")
    return {"to_learn_from": report, "to_test_with": report}


@asset(uri=HERE / "both", partition=DAILY, schedule=days & late)
def both(spark, context):
    """When both are there."""
    begin(context, "both")
    return rows_of(spark, context)


@asset(uri=HERE / "either", partition=DAILY, schedule=late | days)
def either(spark, context):
    """When one of them is there, and again with the other."""
    begin(context, "either")
    return rows_of(spark, context)


@asset(uri=HERE / "nested", partition=DAILY, schedule=(days & prices) | late)
def nested(spark, context):
    """Both, or the third."""
    begin(context, "nested")
    return rows_of(spark, context)


@asset(
    uri=HERE / "day_before",
    partition=DAILY,
    schedule=days,
    upstream={"days": Offset(-1)},
)
def day_before(days, context):
    """By a mapping: the day before."""
    begin(context, "day_before")
    return days.read().selectExpr(f"{context['run_id']}L AS run")


@asset(uri=HERE / "topics", partition=TOPICS, schedule=talk)
def topics(spark, context):
    """Each topic that was found."""
    begin(context, "topics")
    return rows_of(spark, context)


@asset(uri=HERE / "overview", schedule=days)
def overview(spark, context):
    """Not partitioned: after each day."""
    begin(context, "overview")
    return rows_of(spark, context)

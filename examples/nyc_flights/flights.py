"""Flights out of New York in 2013, as they were reported."""

from places import DAILY, LAKE
from source import airlines, flights, only

from slicewise import asset


@asset(uri=LAKE / "raw_flights", partition=DAILY, strategy="range", group="source")
def raw_flights(spark, context):
    """Every flight, by the local day of its departure."""
    # There may be others between the days that are asked for.
    days = [(key.text,) for key in context["partition"].keys]
    day = "CAST(make_date(year, month, day) AS STRING) AS date"
    return only(flights(spark).selectExpr("*", day), days, "date")


@asset(uri=LAKE / "carriers", group="source")
def carriers(spark):
    """The airlines' names: not partitioned, small, made as a whole."""
    return airlines(spark)

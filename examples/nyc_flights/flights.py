"""Flights out of New York in 2013, as they were reported."""

from places import DAILY, LAKE
from source import airlines, flights

from slicewise import asset


@asset(uri=LAKE / "raw_flights", partition=DAILY, strategy="range", group="source")
def raw_flights(spark, context):
    """Every flight, by the local day of its departure."""
    days = [key.text for key in context["partition"].keys]
    day = "make_date(year, month, day)"
    return (
        flights(spark)
        .selectExpr("*", f"CAST({day} AS STRING) AS date")
        .where(f"{day} BETWEEN '{min(days)}' AND '{max(days)}'")
    )


@asset(uri=LAKE / "carriers", group="source")
def carriers(spark):
    """The airlines' names: not partitioned, small, made as a whole."""
    return airlines(spark)

"""What is made of the flights."""

from places import DAILY, DAILY_BY_AIRPORT, LAKE, MONTHLY
from source import only

from slicewise import asset


@asset(uri=LAKE / "daily_delays", partition=DAILY, group="reports")
def daily_delays(raw_flights):
    """How late flights were, a day: one isolated run makes each partition."""
    return (
        raw_flights.read()
        .groupBy("date")
        .agg({"*": "count", "dep_delay": "avg", "arr_delay": "avg"})
        .toDF("date", "flights", "mean_departure_delay", "mean_arrival_delay")
    )


@asset(uri=LAKE / "delays_by_origin", partition=DAILY_BY_AIRPORT, strategy=93, group="reports")
def delays_by_origin(raw_flights, context):
    """How late flights were, a day and an airport: a month of them in one run."""
    keys = [(key["date"].text, key["origin"]) for key in context["partition"].keys]
    return (
        only(raw_flights.read(), keys, "date", "origin")
        .groupBy("date", "origin")
        .agg({"*": "count", "dep_delay": "avg"})
        .toDF("date", "origin", "flights", "mean_departure_delay")
    )


@asset(uri=LAKE / "monthly_report", partition=MONTHLY, group="reports")
def monthly_report(daily_delays):
    """A month of days in one line."""
    return daily_delays.read().selectExpr(
        "count(*) AS days",
        "sum(flights) AS flights",
        "sum(flights * mean_departure_delay) / sum(flights) AS mean_departure_delay",
    )

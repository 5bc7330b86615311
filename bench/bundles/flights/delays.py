"""How late flights were, day by day, made by one run; beside the definitions of the example."""

from places import DAILY, LAKE

from slicewise import asset


@asset(uri=LAKE / "delays_by_day", partition=DAILY, strategy="range")
def delays_by_day(raw_flights):
    """What `daily_delays` makes of one day, of each day."""
    report = (
        raw_flights.read()
        .groupBy("date")
        .agg({"*": "count", "dep_delay": "avg", "arr_delay": "avg"})
    )
    return report.toDF("date", "flights", "mean_departure_delay", "mean_arrival_delay")

"""Partitions that a run finds, and assets that one function makes together."""

from places import FLYING_CARRIERS, LAKE, MONTHLY

from slicewise import Asset, asset

# One line of each airline on each day: how punctual it was.
DAY_OF_CARRIER = """
    SELECT date, carrier, count(*) AS flights, avg(arr_delay) AS mean_arrival_delay
    FROM {flights} GROUP BY date, carrier
"""


@asset(uri=LAKE / "carrier_days", partition=FLYING_CARRIERS, group="reports")
def carrier_days(self, raw_flights, spark, context):
    """The days of each airline that flew: a run finds which there are, or makes those asked for."""
    days = spark.sql(DAY_OF_CARRIER, flights=raw_flights.read()).cache()
    flew = (row.carrier for row in days.select("carrier").distinct().orderBy("carrier").collect())
    for carrier in context["partition"].keys or flew:
        self.write(days.where(days.carrier == carrier).drop("carrier"), partition=carrier)


@asset(
    uri=LAKE / "carrier_report",
    partition=FLYING_CARRIERS,
    schedule=carrier_days,
    group="reports",
)
def carrier_report(carrier_days):
    """An airline in one line; due once for each that is found, and when it is found again."""
    return carrier_days.read().selectExpr(
        "count(*) AS days",
        "sum(flights) AS flights",
        "max_by(date, mean_arrival_delay) AS worst_day",
    )


@asset.multi(
    outlets=[
        Asset("delays_to_learn_from", uri=LAKE / "delays_to_learn_from"),
        Asset("delays_to_test_with", uri=LAKE / "delays_to_test_with"),
    ],
    partition=MONTHLY,
    group="reports",
)
def split_delays(raw_flights):
    """Delays of a month, four fifths to learn from and one to test with, told apart by flight."""
    delays = raw_flights.read().selectExpr(
        "date", "carrier", "flight", "origin", "dest", "dep_delay", "arr_delay"
    )
    delays = delays.where("arr_delay IS NOT NULL")
    return {
        "delays_to_learn_from": delays.where("flight % 5 <> 0"),
        "delays_to_test_with": delays.where("flight % 5 = 0"),
    }

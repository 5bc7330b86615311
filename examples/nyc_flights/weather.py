"""The weather at the three airports."""

from datetime import datetime

from places import DAILY_BY_AIRPORT, HOURLY_BY_AIRPORT, LAKE, NEW_YORK
from source import only
from source import weather as weather_source

from slicewise import asset

LOCAL_DAY = f"date_format(from_utc_timestamp(time_hour, '{NEW_YORK}'), 'yyyy-MM-dd')"


@asset(uri=LAKE / "weather", partition=DAILY_BY_AIRPORT, strategy="range", group="source")
def weather(spark, context):
    """One day at one airport: its hourly readings."""
    days = [(key["date"].text, key["origin"]) for key in context["partition"].keys]
    readings = weather_source(spark).selectExpr("*", f"{LOCAL_DAY} AS date")
    return only(readings, days, "date", "origin")


@asset(uri=LAKE / "observations", partition=HOURLY_BY_AIRPORT, strategy="range", group="reports")
def observations(weather, context):
    """One hour at one airport, for the first three days of the year."""
    hours = [
        (datetime.fromisoformat(key["hour"].text), key["origin"])
        for key in context["partition"].keys
    ]
    readings = only(weather.read(), hours, "time_hour", "origin")
    return readings.selectExpr(
        "origin", "time_hour", "temp", "wind_speed", "precip", "visib", "time_hour AS hour"
    )

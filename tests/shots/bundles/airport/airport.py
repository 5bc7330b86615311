"""Assets of the present: schedules, lateness, steps, validations and alerts of an airport."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from slicewise import Alert, Asset, AssetValidation, Freshness, PartitionByInterval, asset

NEW_YORK = "America/New_York"
_NOW = datetime.now(ZoneInfo(NEW_YORK))
_FIRST = (_NOW - timedelta(days=40)).date()
# Some hours ago, whenever the pictures are taken.
_HOUR = (_NOW - timedelta(hours=4)).hour
HOURLY = PartitionByInterval("@hourly", timezone=NEW_YORK, start=_FIRST)
DAILY = PartitionByInterval("@daily", timezone=NEW_YORK, start=_FIRST)

fuel_prices = Asset(
    "fuel_prices",
    uri="s3://airport/fuel_prices",
    partition=DAILY,
    description="Prices of jet fuel; a job of the purchasing department writes them.",
    owners=["purchasing"],
    group="airport",
    freshness=Freshness(within=timedelta(hours=8), warn=timedelta(hours=4)),
)


@asset(
    uri="s3://airport/departures",
    partition=HOURLY,
    schedule="5 * * * *",
    retries=2,
    group="airport",
    owners=["ada"],
    tags=["live"],
    alerts=[Alert("run_failed", to="oncall")],
)
def departures(spark, context):
    """Departures of one hour, as the tower reports them."""
    return spark.read.json("s3://tower/departures")


@asset(uri="s3://airport/departure_board", partition=HOURLY, schedule=departures, group="airport")
def departure_board(departures):
    """The lines of the boards in the halls."""
    return departures.read().orderBy("scheduled_at")


@asset(
    uri="s3://airport/delay_forecast",
    partition=DAILY,
    schedule=f"30 {_HOUR} * * *",
    retries=2,
    params={"model": "gradient-boosting", "horizon_hours": 24, "quantiles": [0.5, 0.9]},
    outlet_validations=[
        AssetValidation.row_count(min=1),
        AssetValidation.not_null("flight", "expected_delay"),
    ],
    inlet_validations={fuel_prices: [AssetValidation.row_count(min=1)]},
    group="airport",
    owners=["ada", "ben"],
    tags=["live", "model"],
    alerts=[Alert(to="oncall")],
)
def delay_forecast(departures, fuel_prices, model_server, context):
    """How late each flight of the day is expected to be."""
    return model_server.predict(departures.read(), context["params"])


@delay_forecast.setup
def model_server(context):
    """Start a server for the model."""


@delay_forecast.teardown
def stop_model_server(model_server):
    """Stop the server."""


@asset(
    uri="s3://airport/gate_changes",
    partition=DAILY,
    schedule="@daily",
    group="airport",
    description="Gates that changed within an hour of a departure.",
)
def gate_changes(departures):
    return departures.read().where("gate <> planned_gate")


@asset(uri="s3://airport/airports", group="airport")
def airports(spark):
    """Names and places of all airports: not partitioned."""
    return spark.read.csv("s3://tower/airports.csv")

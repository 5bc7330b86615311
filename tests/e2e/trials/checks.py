"""Assets whose data is validated."""

from datetime import timedelta

from places import HERE

from slicewise import AssetValidation, asset, validation


@asset(uri=HERE / "readings", params={"rows": 3, "warmest": 20})
def readings(spark, context):
    """Readings of thermometers; the first thermometer has no name."""
    rows, warmest = context["params"]["rows"], context["params"]["warmest"]
    return spark.range(rows).selectExpr(
        "id", "if(id = 0, NULL, 'thermometer') AS name", f"{warmest} - id AS celsius"
    )


@validation
def weather_on_earth(frame):
    """The temperature is below sixty degrees."""
    hot = frame.where("celsius >= 60").count()
    return f"{hot} thermometers are on fire" if hot else None


@asset(
    uri=HERE / "checked",
    inlet_validations={
        readings: [
            AssetValidation.row_count(min=1),
            AssetValidation.fresh_within(timedelta(days=1)),
        ]
    },
    outlet_validations=[
        AssetValidation.not_null("name", severity="warn"),
        AssetValidation.unique("id"),
        weather_on_earth,
    ],
)
def checked(readings):
    """The readings, after validation."""
    print("the function runs")
    return readings.read()

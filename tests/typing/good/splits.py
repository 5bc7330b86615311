"""Several assets of one function, and validations."""

from datetime import timedelta
from typing import Any

from slicewise import Asset, AssetHandle, AssetValidation, PartitionByInterval, asset, validation

DAILY = PartitionByInterval("@daily", start="2024-01-01")


@validation
def is_positive(frame: Any) -> bool:
    """Require amounts above zero."""
    return bool(frame.where("amount <= 0").count() == 0)


@validation(severity="warn")
def has_rows(frame: Any) -> str | None:
    """Require at least one row."""
    return None if frame.count() else "there are no rows"


trips = Asset(
    "trips",
    columns=["amount", "phone"],
    partition=DAILY,
    outlet_validations=[AssetValidation.has_columns("amount"), is_positive],
)

train = Asset("train", uri="file:///lake/train")
test = Asset("test", uri="file:///lake/test", outlet_validations=[has_rows])


@asset.multi(
    outlets=[train, test],
    schedule=trips,
    partition=DAILY,
    inlet_validations={
        trips: [
            AssetValidation.has_columns(trips.amount, trips.phone),
            AssetValidation.fresh_within(timedelta(days=2), severity="warn"),
        ]
    },
)
def split(trips: AssetHandle) -> dict[str, Any]:
    """Split the trips into rows to train with and rows to test with."""
    frame = trips.read()
    return {"train": frame.where("amount > 3"), "test": frame.where("amount <= 3")}


@asset(
    uri="file:///lake/scores",
    schedule=train | test,
    partition=DAILY,
    outlet_validations=[
        AssetValidation.not_null("amount"),
        AssetValidation.unique("amount", "phone", severity="warn"),
        AssetValidation.accepted_values("phone", ["1", "2"]),
        AssetValidation.matches("phone", r"\d+"),
        AssetValidation.has_types({"amount": "bigint"}),
        AssetValidation.row_count(min=1, max=100),
    ],
)
def scores(train: AssetHandle, test: AssetHandle) -> Any:
    """Return the score of the model."""
    return train.read().join(test.read(), "phone")

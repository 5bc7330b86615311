"""An asset with more partitions than one would make: a million minutes and more."""

from datetime import date

from slicewise import PartitionByInterval, asset

MINUTES = PartitionByInterval(
    "* * * * *", timezone="America/New_York", start=date(2020, 1, 1), end=date(2022, 1, 1)
)


@asset(partition=MINUTES)
def minutes(context):
    """Nothing: only the database is measured."""

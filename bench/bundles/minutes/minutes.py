"""An asset with more partitions than one would make: a million minutes and more; and an asset that
needs these partitions.
"""

from datetime import date

from slicewise import PartitionByInterval, asset

MINUTES = PartitionByInterval(
    "* * * * *", timezone="America/New_York", start=date(2020, 1, 1), end=date(2022, 1, 1)
)


@asset(partition=MINUTES)
def minutes(context):
    """Nothing: only the database is measured."""


@asset(partition=MINUTES)
def averages(context, minutes):
    """Nothing: each partition needs the minute of the same time."""

"""Hours, days made from the hours, and a total: made by one backfill, without data."""

from slicewise import PartitionByInterval, asset

SPAN = {"start": "2024-01-01", "end": "2024-02-01"}


@asset(partition=PartitionByInterval("@hourly", **SPAN), tags=["several"], strategy=12)
def several_hours():
    """Twelve in a run."""


@asset(partition=PartitionByInterval("@daily", **SPAN), tags=["several"])
def several_days(several_hours):
    """Each needs its 24 hours."""


@asset()
def several_total(several_days):
    """Reads the days that there are."""

"""Assets on which a test tries each action of the pages."""

import time

from places import DAILY, HERE

from slicewise import Asset, PartitionAtRuntime, PartitionByInterval, asset

# What another program writes.
brought = Asset("brought", partition=DAILY)


@asset(partition=DAILY, schedule="@daily", paused=True, params={"until": "paged-may-end"})
def waits(context):
    """Waits until a test lets it end."""
    end = time.monotonic() + 600
    while not (HERE / context["params"]["until"]).exists() and time.monotonic() < end:
        time.sleep(0.1)


@asset(partition=PartitionAtRuntime(name="guests"))
def guests():
    """One partition for each guest."""


@asset(partition=PartitionByInterval("@hourly", start="2024-01-01", end="2024-01-03"))
def paged_hours():
    """Ends at once."""

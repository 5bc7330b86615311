"""Assets on a fast clock; paused until a test unpauses an asset."""

from datetime import timedelta

from slicewise import PartitionByInterval, asset


@asset(
    schedule=timedelta(seconds=1),
    partition=PartitionByInterval(timedelta(seconds=1)),
    paused=True,
)
def pulse():
    """One partition a second."""


@asset(schedule=pulse, partition=PartitionByInterval(timedelta(seconds=4)))
def bars(pulse):
    """Four beats each."""


@asset(schedule=bars)
def score(bars):
    """The whole, after every bar."""

"""A layer of assets on a fast clock, and two that follow it."""

from datetime import timedelta

from slicewise import PartitionByInterval, asset

SECONDS = PartitionByInterval(timedelta(seconds=1))


@asset(schedule=timedelta(seconds=1), partition=SECONDS)
def pulse():
    """One partition a second."""


@asset(schedule=pulse, partition=SECONDS)
def echo(pulse):
    """The layer after it."""


@asset(schedule=echo, partition=PartitionByInterval(timedelta(seconds=4)))
def bars(echo):
    """Four of these make one."""

"""A layer of assets on a fast clock, and two that follow it."""

import os
from datetime import timedelta

from slicewise import Alert, Freshness, PartitionByInterval, asset

SECONDS = PartitionByInterval(timedelta(seconds=1))
# `bench.connected` compares both.
IS_CONNECTED = bool(os.environ.get("CONNECTED"))
FRESHNESS = Freshness(within=timedelta(seconds=30)) if IS_CONNECTED else None
ALERTS = [Alert(to="connected")] if IS_CONNECTED else []


@asset(schedule=timedelta(seconds=1), partition=SECONDS, freshness=FRESHNESS, alerts=ALERTS)
def pulse():
    """One partition a second."""


@asset(schedule=pulse, partition=SECONDS, freshness=FRESHNESS, alerts=ALERTS)
def echo(pulse):
    """The layer after it."""


@asset(schedule=echo, partition=PartitionByInterval(timedelta(seconds=4)))
def bars(echo):
    """Four of these make one."""

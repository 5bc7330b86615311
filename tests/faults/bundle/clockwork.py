"""Assets on a fast clock, in great numbers, and such as never become ready."""

import time
from datetime import date, timedelta

from marks import marked, take_time

from slicewise import PartitionByInterval, asset

SECONDS = PartitionByInterval(timedelta(seconds=1))
MINUTES = PartitionByInterval(timedelta(minutes=1), start=date(2000, 1, 1))
HOURLY = PartitionByInterval("@hourly", start=date(1990, 1, 1))
DAILY = PartitionByInterval("@daily", start=date(2000, 1, 1))
IN_BERLIN = PartitionByInterval("@hourly", timezone="Europe/Berlin", start=date(2024, 1, 1))


@asset(schedule=timedelta(seconds=1), partition=SECONDS, paused=True)
def tick():
    """One partition a second."""


@asset(schedule=timedelta(seconds=1), partition=SECONDS, paused=True)
def tock():
    """One partition a second, beside the first asset."""


@asset(partition=HOURLY, strategy="range")
def hours():
    """Hundreds of thousands of partitions."""


@asset(partition=MINUTES, strategy=50_000, retries=0)
def minutes(context):
    """A million partitions in twenty runs, every fourth of which fails."""
    first = context["partition"].interval.start
    if int(first.timestamp()) // 60 // 50_000 % 4 == 1:
        raise ValueError(f"no data from {first}")


@asset(partition=DAILY)
def days():
    """Made in no time."""


@asset(partition=DAILY, params={"seconds": 1.0, "until": ""})
def patient(context):
    """Takes its time."""
    with marked(context):
        take_time(context["params"])


@asset(partition=DAILY, max_active_runs=1)
def crowded(context):
    """One at a time, and the first takes for ever."""
    with marked(context):
        time.sleep(3600)


@asset(schedule=hours, partition=DAILY)
def roll_up(hours):
    """Ready when all hours of its day are there."""


@asset()
def source():
    """The upstream asset of the unrelated asset."""


@asset(schedule=source)
def unrelated(source):
    """Has nothing to do with all the others."""


@asset(partition=IN_BERLIN, strategy="range")
def berlin():
    """Hours of a place whose clocks are put forward and back."""

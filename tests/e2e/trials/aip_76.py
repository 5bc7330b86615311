"""The examples of AIP-76 as written in the document, without data; paused until a test unpauses an
asset.
"""

from slicewise import (
    PartitionAtRuntime,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    asset,
)

WAREHOUSES = ["marketing-dwh", "engineering-dwh"]


# "Time-based Partitions"


@asset(schedule="@hourly", partition=PartitionByInterval("@hourly"), paused=True)
def raw_hourly_data():
    """One partition an hour."""


@asset(schedule="@daily", partition=PartitionByInterval("@hourly"), paused=True)
def hourly_data_generated_daily():
    """24 partitions at midnight."""


@asset(schedule="@hourly", partition=PartitionByInterval("@daily"), paused=True)
def daily_data_looked_at_hourly():
    """23 ticks of 24 find nothing to make."""


# "Partition Dependency"


@asset(schedule=raw_hourly_data, partition=PartitionByInterval("@hourly"))
def hourly_data(raw_hourly_data):
    """The same hours."""


@asset(schedule=raw_hourly_data, partition=PartitionByInterval("30 * * * *"))
def hourly_data_shifted(raw_hourly_data):
    """Hours from half past to half past: each needs two."""


@asset(schedule=hourly_data, partition=PartitionByInterval("@daily"))
def aggregated_daily_data(hourly_data):
    """Each day needs its 24 hours."""


@asset(schedule="@yearly", partition=PartitionByInterval("@yearly"), paused=True)
def yearly_data():
    """Seldom made."""


@asset(schedule=yearly_data, partition=PartitionByInterval("@monthly"))
def data_using_slow_data(yearly_data):
    """12 of one."""


# "Combined Partitions"


@asset(schedule="@daily", partition=PartitionBySequence(WAREHOUSES), paused=True)
def dwh_daily_cloud_spend():
    """One of each warehouse."""


@asset(
    schedule=dwh_daily_cloud_spend,
    partition=PartitionByProduct([PartitionByInterval("@hourly"), PartitionBySequence(WAREHOUSES)]),
)
def dwh_spend_analysis():
    """24 hours x 2 warehouses."""


# "Runtime-assigned Partitions"

active_customers = PartitionAtRuntime(name="aip_76_customers")


@asset(partition=active_customers)
def energy_consumption_model(self):
    """Finds two customers."""
    for customer in ("ada", "grace"):
        active_customers.add_partition(key=customer)


@asset(schedule=energy_consumption_model, partition=active_customers)
def energy_prediction():
    """Once for each customer that is found."""

"""A definition file that cannot be loaded: the page of the bundles shows the error."""

from slicewise import PartitionByInterval, asset

DAILY = PartitionByInterval("@daily", start="2024-13-01")


@asset(partition=DAILY)
def lost_bags(spark):
    """Bags that nobody has fetched."""
    return spark.read.json("s3://tower/bags")

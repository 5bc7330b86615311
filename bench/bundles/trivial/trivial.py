"""Next to nothing, each in a process of its own."""

import os
from datetime import date
from pathlib import Path

from slicewise import PartitionByInterval, asset

HERE = Path(os.environ["LAKE"]) / "trivial"
MINUTES = PartitionByInterval("* * * * *", start=date(2024, 1, 1), end=date(2024, 2, 1))


@asset(partition=MINUTES)
def trivial(context):
    """A file of its own for each minute, and a line in the log."""
    HERE.mkdir(parents=True, exist_ok=True)
    key = context["partition"].key
    (HERE / f"{key.start:%Y-%m-%dT%H%M}").write_text(f"made by run {context['run_id']}\n")
    print("made", key)

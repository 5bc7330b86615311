"""Assets that want more than there is."""

import os
import signal
import subprocess
import time
from datetime import date
from pathlib import Path

from marks import HERE

from slicewise import PartitionByInterval, PartitionByProduct, PartitionBySequence, asset

BY_DAY = PartitionByInterval("@daily", start=date(2024, 1, 1), end=date(2024, 3, 1))
PLACES = PartitionByProduct({"day": BY_DAY, "airport": PartitionBySequence(["JFK", "LGA"])})
_MEGABYTE = b"x" * 1_048_575 + b"\n"


@asset(uri=HERE / "small" / "large", partition=BY_DAY, params={"rows": 1})
def large(spark, context):
    """As large as the param `rows` asks for."""
    rows = context["params"]["rows"]
    return spark.range(0, rows, 1, 1).selectExpr("id", "uuid() AS text")


@asset(uri=HERE / "small" / "nested", partition=PLACES, params={"said": "old"})
def nested(spark, context):
    """Little, in folders within folders."""
    return spark.sql(f"SELECT '{context['params']['said']}' AS said")


@asset()
def talkative():
    """Prints a gigabyte."""
    for _ in range(1024):
        os.write(1, _MEGABYTE)


@asset()
def deadly():
    """Ends the worker, as the kernel would that has no memory left for either."""
    time.sleep(1)
    warm_parent = Path(f"/proc/{os.getppid()}/stat").read_text()
    os.kill(int(warm_parent.rpartition(")")[2].split()[1]), signal.SIGKILL)
    time.sleep(60)


@asset()
def multiplying():
    """A fork bomb with an end: 64 processes, every other one detached."""
    for _ in range(5):
        if os.fork() == 0:
            os.setsid()
        subprocess.Popen(["sleep", "604"])
    print("they are many", flush=True)
    time.sleep(2)
    os._exit(3)

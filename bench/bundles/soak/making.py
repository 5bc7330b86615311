"""What all functions of this bundle do: say that they run, and write whose data it is."""

import fcntl
import json
import os
import re
import time

from clock import HERE

_MARKS = HERE / "marks"
# Held until this process has ended: what a function returns is written after it.
_held = []


def begin(context, name):
    """Leave a mark, and take the lock of each partition: the kernel gives it back when the process
    ends, however it ends. One that is taken is on record as made twice at once.
    """
    _MARKS.mkdir(parents=True, exist_ok=True)
    said = {"run": context["run_id"], "attempt": context["attempt"], "pid": os.getpid()}
    keys = [str(key) for key in context["partition"].keys] or ["run that finds partitions"]
    with (_MARKS / "begun").open("a") as begun:
        begun.write(json.dumps({**said, "asset": name, "keys": keys, "at": time.time()}) + "\n")
    for key in keys:
        lock = (_MARKS / re.sub(r"\W+", "-", f"{name} {key}")).open("a+")
        _held.append(lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with (_MARKS / "twice").open("a") as twice:
                twice.write(json.dumps({**said, "asset": name, "key": key}) + "\n")


def rows_of(spark, context, count=1):
    """Some rows that say which run made them."""
    return spark.sql(f"SELECT CAST({context['run_id']} AS BIGINT) AS run, id FROM range({count})")


def write_each(asset, spark, context):
    """Each partition of the run by itself."""
    for key in context["partition"].keys:
        asset.write(rows_of(spark, context), partition=key)

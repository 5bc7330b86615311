"""Assets with a set-up and a tear-down, which leave traces that a test reads."""

import time
from pathlib import Path

from places import DAILY, HERE

from slicewise import Asset, asset


def trace(context, text: str) -> None:
    """Append a line to the file of the attempt."""
    file = Path(HERE) / "around" / f"{context['run_id']}-{context['attempt']}"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as lines:
        lines.write(f"{text}\n")


def cluster(spark, context):
    """Leaves a view in the session, which the function and the tear-down read."""
    trace(context, "setup")
    print("starting the cluster")
    spark.range(4).createOrReplaceTempView("nodes")
    return "nodes"


def close(spark, cluster, context):
    """Ends at once, or never, as the run asks."""
    trace(context, f"teardown {spark.table(cluster).count()} {context['outcome']}")
    print("stopping the cluster")
    if context["params"].get("close") == "fails":
        raise OSError("the cluster does not answer")


def work(context) -> None:
    """Work as the run asks: end, fail, or go on for longer than any test waits."""
    trace(context, "function")
    print("at work")
    if context["params"]["work"] == "fails":
        raise ValueError("fog")
    if context["params"]["work"] == "waits":
        time.sleep(600)


@asset(uri=HERE / "guarded", partition=DAILY, params={"work": "ends", "close": "ends"})
def guarded(spark, cluster, context):
    """The rows of the set-up."""
    work(context)
    return spark.table(cluster)


guarded.setup(cluster)
guarded.teardown(close)


# The set-up is part of the time, and takes some seconds on a slow machine.
@asset(timeout=20, setup=cluster, teardown=close)
def guarded_dawdler(context):
    """Takes longer than its timeout."""
    trace(context, "function")
    time.sleep(600)


@asset.multi(
    outlets=[Asset("guarded_left", uri=HERE / "left"), Asset("guarded_right", uri=HERE / "right")],
    params={"work": "ends", "close": "ends"},
    setup=cluster,
    teardown=close,
)
def guarded_both(spark, cluster, context):
    """Two assets of the rows of the set-up."""
    work(context)
    frame = spark.table(cluster)
    return {"guarded_left": frame, "guarded_right": frame}

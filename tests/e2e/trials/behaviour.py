"""Assets that behave in ways that a test wants to watch."""

import os
import sys
import time

from places import DAILY, HERE

from slicewise import asset


@asset(uri=HERE / "slow", partition=DAILY)
def slow(spark, context):
    """Leaves a pulse while the function works, so that a test sees whether the code still runs."""
    pulse = HERE / "pulse" / f"{context['run_id']}-{context['attempt']}"
    pulse.parent.mkdir(parents=True, exist_ok=True)
    with pulse.open("a") as beats:
        for _ in range(15):
            beats.write(f"{time.time()}\n")
            beats.flush()
            time.sleep(0.1)
    key, attempt = context["partition"].key.text, context["attempt"]
    return spark.sql(f"SELECT '{key}' AS day, {attempt} AS attempt")


@asset(partition=DAILY)
def held():
    """Waits until a test lets it end."""
    end = time.monotonic() + 600
    while not (HERE / "held-may-end").exists() and time.monotonic() < end:
        time.sleep(0.1)


@asset(uri=HERE / "endless")
def endless(spark):
    """Keeps Spark busy for longer than any test waits."""
    print("counting for ever")
    spark.range(0, 10**13, 1, 1).selectExpr("sum(id * id % 7) AS total").collect()


@asset(uri=HERE / "broken", partition=DAILY, params={"reason": "fog"})
def broken(context):
    """Fails with a reason."""
    print("looking out of the window")
    raise ValueError(f"the airport is closed: {context['params']['reason']}")


def tell(self, context):
    """Called after runs of the asset below."""
    day, attempt = context["partition"], context["attempt"]
    print(f"{self.name} of {day}, attempt {attempt}: {context['error']}")
    if context["error"] is None:
        raise ConnectionError("nobody takes mail")


@asset(partition=DAILY, retries=1, retry_delay=0, on_success=tell, on_failure=tell)
def told(context):
    """Fails on the second of a month, in each attempt."""
    print("trying")
    if str(context["partition"]).endswith("-02"):
        raise ValueError("the airport is closed")


@asset(timeout=1)
def dawdles():
    """Takes longer than its timeout."""
    time.sleep(60)


@asset()
def leaves():
    """Ends its process without a message."""
    os._exit(3)


@asset()
def snoops():
    """Prints everything that a curious function can find out about the server."""
    print("own environment:", dict(os.environ))
    for number in {os.getpid(), os.getppid()}:
        try:
            with open(f"/proc/{number}/environ", "rb") as environ:
                print("environment of", number, environ.read())
        except PermissionError:
            print("environment of", number, "not to be read")
    print("arguments:", sys.argv, sys.orig_argv)
    for number in os.listdir("/proc/self/fd"):
        try:
            print("descriptor", number, os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:
            continue

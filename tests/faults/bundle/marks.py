"""Marks of a run's code, by which a test can see the times at which the code ran."""

import os
import threading
import time
from contextlib import contextmanager
from pathlib import Path

HERE = Path(os.environ["LAKE"]) / "faults"
_EVERY_SECONDS = 0.05
# Longer than any test waits.
_LONGEST_SECONDS = 600.0


def take_time(params):
    """Take so many seconds, and wait then until the file exists that `until` names, if any."""
    time.sleep(params["seconds"])
    end = time.monotonic() + _LONGEST_SECONDS
    while params["until"] and not (HERE / params["until"]).exists() and time.monotonic() < end:
        time.sleep(_EVERY_SECONDS)


@contextmanager
def marked(context):
    """Mark a file of this attempt twenty times a second within the block.

    The first line is the process; the last line is `stop` if the code came so far.
    """
    name = f"{context['run_id']}-{context['attempt']}"
    file = HERE / "marks" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    over = threading.Event()
    with file.open("a") as marks:
        marks.write(f"{os.getpid()}\n")

        def mark():
            while not over.is_set():
                marks.write(f"{time.time()}\n")
                marks.flush()
                over.wait(_EVERY_SECONDS)

        beating = threading.Thread(target=mark, daemon=True)
        beating.start()
        try:
            yield
        finally:
            over.set()
            beating.join()
        marks.write("stop\n")

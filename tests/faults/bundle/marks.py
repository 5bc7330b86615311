"""What the code of a run leaves, so that a test can see when it ran and when it did not."""

import os
import threading
import time
from contextlib import contextmanager
from pathlib import Path

HERE = Path(os.environ["LAKE"]) / "faults"
_EVERY_SECONDS = 0.05


@contextmanager
def marked(context):
    """Within the block a file of this attempt gets a mark twenty times a second.

    Its first line is the process, the last one `stop` if the code came so far.
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

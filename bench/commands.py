"""Row 20: processor time of a list of the command line beside a running stack."""

import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.figures import Figure, duration
from bench.running import BUNDLES, data_folder, with_lake
from slicewise_server.stack.stack import Stack

_SLICEWISE = Path(sys.executable).with_name("slicewise")
_LIST = ("assets", "list")
_REACH_SECONDS = 0.4


def measure(times: int) -> Iterator[Figure]:
    """Measure the list of assets, each time in a new process."""
    with data_folder() as folder:
        whole = Stack(folder, bundles={"trivial": BUNDLES / "trivial"}, env=with_lake(folder))
        whole.start()
        try:
            env = {**whole.services.env, **whole.environment()}
            _processor_seconds(env)  # the files come from the disk
            yield _figure([_processor_seconds(env) for _ in range(times)])
        finally:
            whole.stop()


def _processor_seconds(env: dict[str, str]) -> float:
    """Return the processor time of one list, of the user and of the system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([_SLICEWISE, *_LIST], env=env, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _figure(taken: list[float]) -> Figure:
    middle = median(taken)
    return Figure(
        row=20,
        work=f"slicewise {' '.join(_LIST)} beside a stack",
        measured=f"{duration(middle)} of processor time, at most {duration(max(taken))}",
        seconds=middle,
        reach=f"{duration(_REACH_SECONDS)} of processor time",
        reached=middle <= _REACH_SECONDS,
        times=len(taken),
    )

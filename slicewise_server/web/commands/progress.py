"""Waiting for work to end, with a progress bar on a terminal."""

import sys
import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from slicewise_server.web.commands.work_progress import WorkProgress


def wait_until_ended(
    title: str, look: Callable[[], WorkProgress], *, interval_seconds: float = 0.5
) -> WorkProgress:
    """Return the progress once the work has ended; a bar on standard error shows each ``look``."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[state]}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not sys.stderr.isatty()) as bars:
        bar = bars.add_task(title, total=None, state="")
        while True:
            progress = look()
            failed = f"{progress.failed} failed" if progress.failed else ""
            state = ", ".join(filter(None, (progress.state, failed)))
            bars.update(bar, total=progress.total or None, completed=progress.done, state=state)
            if progress.ended:
                return progress
            time.sleep(interval_seconds)

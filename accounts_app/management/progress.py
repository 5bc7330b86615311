"""Waiting for work to end, with a bar when a person looks."""

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

from accounts_app.management.standing import Standing


def wait_until_ended(
    title: str, look: Callable[[], Standing], *, interval_seconds: float = 0.5
) -> Standing:
    """Look again and again until the work has ended; the bar goes to standard error."""
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
            standing = look()
            failed = f"{standing.failed} failed" if standing.failed else ""
            state = ", ".join(filter(None, (standing.state, failed)))
            bars.update(bar, total=standing.total or None, completed=standing.done, state=state)
            if standing.ended:
                return standing
            time.sleep(interval_seconds)

"""The command: start everything, make the flights of 2013, show them, serve the pages."""

from __future__ import annotations

import argparse
import signal
import threading
import time
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from config import up
from config.demo.client import Client
from config.demo.source import Expected, expected
from config.demo.work import Made, make_everything
from config.stack.stack import ADMIN, Stack


def main(arguments: Sequence[str]) -> int:
    """Run the demo; 0 only if everything that the source holds is there."""
    parser = argparse.ArgumentParser(prog="slicewise demo", description=main.__doc__)
    parser.add_argument("--once", action="store_true", help="end after the table")
    options = parser.parse_args(arguments)
    console = Console()
    stack = up.embedded()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        began = time.monotonic()
        console.print(f"Starting Slicewise on {stack.data} …")
        stack.start()
        console.print(f"Ready after {time.monotonic() - began:.0f} s at {stack.web_url}")
        complete = _work(console, stack)
        if not options.once:
            up.announce(stack)
            threading.Event().wait()
        return 0 if complete else 1
    except KeyboardInterrupt:
        return 0
    finally:
        stack.stop()


def _work(console: Console, stack: Stack) -> bool:
    client = Client(stack.web_url, ADMIN, stack.admin_password)
    source = expected()
    made = make_everything(client)
    console.print(_table(made, source))
    short = [one.asset for one in made if not _complete(one, source)]
    if short:
        console.print(
            f"[bold red]Not all there:[/] {', '.join(short)}. See {stack.web_url}/backfills/"
        )
    else:
        console.print("[bold green]Everything that the source holds is there.[/]")
    return not short


def _table(made: Sequence[Made], source: Mapping[str, Expected]) -> Table:
    table = Table(title="What was made, beside what the source holds")
    table.add_column("asset")
    for title in ("partitions", "of", "rows", "of", "seconds"):
        table.add_column(title, justify="right")
    for one in made:
        whole = source[one.asset]
        table.add_row(
            one.asset,
            f"{one.partitions:,}",
            f"{whole.partitions:,}",
            f"{one.rows:,}",
            f"{whole.rows:,}",
            "was there" if one.seconds is None else f"{one.seconds:.1f}",
            style=None if _complete(one, source) else "red",
        )
    return table


def _complete(one: Made, source: Mapping[str, Expected]) -> bool:
    whole = source[one.asset]
    return (one.partitions, one.rows) == (whole.partitions, whole.rows)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt

"""The command: start the stack, materialize the flights of 2013, print a table, serve the pages."""

from __future__ import annotations

import argparse
import signal
import threading
import time
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from slicewise_server.stack import up
from slicewise_server.stack.demo.client import Client
from slicewise_server.stack.demo.source import Expected, expected
from slicewise_server.stack.demo.work import AssetResult, make_everything
from slicewise_server.stack.stack import ADMIN, Stack


def main(arguments: Sequence[str]) -> int:
    """Run the demo; return 1 if the work has ended and data of the source is missing."""
    parser = argparse.ArgumentParser(prog="slicewise demo", description=main.__doc__)
    parser.add_argument("--once", action="store_true", help="end after the table is printed")
    options = parser.parse_args(arguments)
    console = Console()
    stack, complete = up.embedded(), True
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
    except KeyboardInterrupt:
        pass  # a person ends the demo in this way
    finally:
        stack.stop()
    return 0 if complete else 1


def _work(console: Console, stack: Stack) -> bool:
    client = Client(stack.web_url, ADMIN, stack.admin_password)
    source = expected()
    results = make_everything(client)
    console.print(_table(results, source))
    incomplete = [result.asset for result in results if not _complete(result, source)]
    if incomplete:
        console.print(
            f"[bold red]Incomplete:[/] {', '.join(incomplete)}. See {stack.web_url}/backfills/"
        )
    else:
        console.print("[bold green]All data of the source is materialized.[/]")
    return not incomplete


def _table(results: Sequence[AssetResult], source: Mapping[str, Expected]) -> Table:
    table = Table(title="Materialized data, beside the source")
    table.add_column("asset")
    for title in ("partitions", "of", "rows", "of", "seconds"):
        table.add_column(title, justify="right")
    for result in results:
        counts = source[result.asset]
        table.add_row(
            result.asset,
            f"{result.partitions:,}",
            f"{counts.partitions:,}",
            f"{result.rows:,}",
            f"{counts.rows:,}",
            "was there" if result.seconds is None else f"{result.seconds:.1f}",
            style=None if _complete(result, source) else "red",
        )
    return table


def _complete(result: AssetResult, source: Mapping[str, Expected]) -> bool:
    counts = source[result.asset]
    return (result.partitions, result.rows) == (
        counts.partitions,
        counts.rows,
    )


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt

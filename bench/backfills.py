"""``python -m bench.backfills``: a year of flights by each strategy, and waits of scheduled runs.

The data of the strategies is compared, value by value. The wait of a scheduled run, from the due
instant to the start, is measured on the same stack without a backfill, and then beside a backfill.
"""

import argparse
import hashlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from statistics import median

import psycopg
import pyarrow.dataset
from rich.console import Console
from rich.table import Table

from bench.figures import duration
from bench.flights import YEAR
from bench.layers import DUE
from bench.running import BUNDLES, backfill, data_folder, sign_in, stack, wait_for
from slicewise_server.stack.demo.client import Client
from slicewise_server.stack.stack import Stack

# The first days again, when past runs of the same kind give an estimate.
STRATEGIES: tuple[str | int, ...] = ("partition", 31, "range", 31, "partition")
ASSET = "daily_delays"
_WATCHED_SECONDS = 30


def main() -> int:
    """Measure both; return exit status 1 if the strategies wrote different data."""
    parser = argparse.ArgumentParser(prog="python -m bench.backfills", description=__doc__)
    parser.add_argument("--first", default=YEAR[0], help="the first day")
    parser.add_argument("--last", default=YEAR[1], help="the last day")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with data_folder() as folder, stack(folder) as whole:
        shutil.copytree(BUNDLES / "beat", folder / "definitions", dirs_exist_ok=True)
        whole.start()
        client = sign_in(whole)
        for name in ("pulse", "echo", "bars"):
            client.post(f"/assets/{name}/pause/")
        backfill(client, "raw_flights", *YEAR)
        same = compare_strategies(client, folder / "lake", options.first, options.last)
        compare_waiting(whole, client, options.first, options.last)
    return 0 if same else 1


def compare_strategies(client: Client, lake: Path, first: str, last: str) -> bool:
    """Materialize the days by each strategy; return whether the data is equal."""
    table = Table(title=f"{ASSET} from {first} to {last}")
    for title in ("strategy", "announced", "seconds", "rows", "digest of the data"):
        table.add_column(title)
    found = set()
    for strategy in STRATEGIES:
        options = {"strategy": strategy, "max_active_runs": 3}
        said = client.post(
            "/backfills/preview/", asset=ASSET, start=first, end=last, existing="all", **options
        )["estimate"]
        took = backfill(client, ASSET, first, last, **options)
        rows, digest = data_of(lake / ASSET)
        found.add((rows, digest))
        announced = "unknown" if said is None else f"{said['seconds']:.1f}"
        table.add_row(str(strategy), announced, f"{took:.1f}", f"{rows:,}", digest[:16])
    Console().print(table)
    return len(found) == 1


def data_of(folder: Path) -> tuple[int, str]:
    """Return the number of rows in a folder, and a digest of all values and partition names."""
    files = [str(file) for file in folder.rglob("*.parquet")]
    read = pyarrow.dataset.dataset(files, format="parquet", partitioning="hive").to_table()
    rows = read.to_pandas().astype(str).sort_values(sorted(read.column_names))
    text = rows[sorted(rows.columns)].to_csv(index=False)
    return len(rows), hashlib.sha256(text.encode()).hexdigest()


def compare_waiting(whole: Stack, client: Client, first: str, last: str) -> None:
    """Measure the waits of scheduled runs without other work, and beside a backfill."""
    table = Table(title="From the due instant to running, scheduled runs of one a second")
    for title in ("beside it", "runs", "median", "worst"):
        table.add_column(title)
    client.post("/assets/pulse/unpause/")
    time.sleep(5)
    table.add_row("nothing", *waits(whole, _WATCHED_SECONDS))
    asked = client.post(
        "/backfills/",
        asset=ASSET, start=first, end=last, existing="all", strategy="partition", max_active_runs=8,
    )  # fmt: skip
    table.add_row("a backfill, a run a day, 8 at once", *waits(whole, _WATCHED_SECONDS))
    client.post("/assets/pulse/pause/")
    wait_for(client, asked)
    Console().print(table)


def waits(whole: Stack, seconds: float) -> tuple[str, str, str]:
    """Return number, median and worst wait of the scheduled runs of the next seconds."""
    with psycopg.connect(whole.environment()["DATABASE_URL"]) as connection:
        before = len(connection.execute(DUE).fetchall())
        time.sleep(seconds)
        waits = [float(row[0]) for row in connection.execute(DUE).fetchall()][before:]
    return str(len(waits)), duration(median(waits)), duration(max(waits))


if __name__ == "__main__":
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    sys.exit(main())

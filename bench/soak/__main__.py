"""``python -m bench.soak [--seconds 600] [--seed 1]``: kill, wait for calm, and check."""

import argparse
import os
import random
import signal
import sys
import time
from datetime import timedelta

import psycopg
from rich.console import Console

from bench.running import BUNDLES, data_folder, sign_in
from bench.soak import checks
from bench.soak.killing import Killer
from bench.soak.record import Record, unfinished
from slicewise_server.stack.process import scrubbed
from slicewise_server.stack.stack import Stack

_PAST = ("2024-01-01", "2024-01-20")
_MINUTE = timedelta(minutes=1)

console = Console(highlight=False)


def main() -> int:
    """Run the soak; return exit status 1 if a check fails."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument(
        "--seconds", type=int, default=600, help="seconds in which processes are killed"
    )
    parser.add_argument(
        "--hour", type=int, default=10, help="seconds that an hour takes: more on a slow machine"
    )
    parser.add_argument(
        "--calm", type=int, default=300, help="seconds until all work must be done afterwards"
    )
    parser.add_argument("--seed", type=int, default=None, help="seed of the random kills")
    parser.add_argument("--keep", action="store_true", help="keep data and logs")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(10**6)
    # On SIGTERM the process still ends the stack and removes the folder.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with data_folder() as folder:
        env = {
            **scrubbed(os.environ),
            "LAKE": str(folder / "lake"),
            "SOAK_HOUR_SECONDS": str(options.hour),
            "SLICEWISE_RUNNER_ENV": "LAKE,SOAK_HOUR_SECONDS",
        }
        whole = Stack(folder, bundles={"soak": BUNDLES / "soak"}, env=env)
        whole.start()
        try:
            violations = _soak(whole, options, seed)
        finally:
            whole.stop()
            if options.keep:
                kept = folder.with_name(folder.name + "-kept")
                folder.rename(kept)
                console.print(f"kept: {kept}")
    for violation in violations[:50]:
        console.print(f"[red]violation[/] {violation}", soft_wrap=True)
    console.print("[red]not as it has to be[/]" if violations else "[green]as it has to be[/]")
    return 1 if violations else 0


def _soak(whole: Stack, options: argparse.Namespace, seed: int) -> list[str]:
    seconds: int = options.seconds
    client = sign_in(whole)
    asked = client.post("/backfills/", asset="archive", start=_PAST[0], end=_PAST[1])
    killer = Killer(whole, random.Random(seed))
    console.print(f"{seconds} s of kills by the dice of --seed {seed}")
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        killed = killer.strike()
        console.print(f"  {time.monotonic() - deadline + seconds:6.1f} s  {killed}")
        time.sleep(min(killer.pause(), max(0.0, deadline - time.monotonic())))
    whole.wait()
    # A tick after the last kill: all partitions that came due meanwhile are due by then.
    time.sleep(15)
    with psycopg.connect(whole.environment()["DATABASE_URL"], autocommit=True) as connection:
        paused_at = Record.pause_all(client, connection)
        left = _await_calm(connection, options.calm)
        record = Record.read(connection)
    backfill = client.get(f"/backfills/{asked['id']}/")
    marks = checks.Marks.read(whole.data / "lake" / "soak" / "marks")
    _say(record, killer, marks)
    return [
        *(f"not calm after {options.calm} s: {what}" for what in left),
        *checks.backfill_is_made(backfill),
        *checks.all_ended_well(record),
        *checks.none_missing(record, paused_at, max(_MINUTE, 3 * timedelta(seconds=options.hour))),
        *checks.none_left_out_by_ticks(record),
        *checks.none_behind(record),
        *checks.none_twice(record, marks),
        *checks.record_is_on_disk(record),
        *checks.disk_is_on_record(record),
    ]


def _await_calm(connection: psycopg.Connection, seconds: int) -> list[str]:
    """Wait until all work is done; return the unfinished work after too long a wait."""
    deadline, calm = time.monotonic() + seconds, 0
    while True:
        left = unfinished(connection)
        calm = 0 if left else calm + 1
        if calm == 4:
            return []
        if time.monotonic() > deadline:
            return left
        time.sleep(1)


def _say(record: Record, killer: Killer, marks: checks.Marks) -> None:
    console.print(f"killed: {killer.total} processes ({killer.summary})")
    staged = checks.left_behind(record)
    console.print(
        f"assets: {len(record.assets)}, partitions made: {len(record.partitions):,},"
        f" materializations: {record.materializations:,}, runs: {sum(record.runs.values()):,}"
        f" ({', '.join(f'{count:,} {state}' for state, count in sorted(record.runs.items()))}),"
        f" attempts: {sum(record.attempts.values()):,}"
        f" ({', '.join(f'{count:,} {name}' for name, count in sorted(record.attempts.items()))}),"
        f" functions begun: {marks.begun:,}, staging folders left: {staged.total():,}",
        soft_wrap=True,
    )


if __name__ == "__main__":
    sys.exit(main())

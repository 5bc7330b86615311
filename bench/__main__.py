"""``python -m bench [--only 6,7] [--times 5]``: measure, and print the table."""

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterator

from rich.console import Console

from bench import arithmetic, commands, database, flights, layers, lists, trivial
from bench.figures import Figure, line, show

IN_DATABASE = {1, 2, 3, 5, 10, 14, 15, 16, 19}


def main() -> None:
    """Measure the chosen rows, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", metavar="ROWS", help="some rows: 1,2 or 6", default="")
    parser.add_argument("--times", type=int, default=5, help="number of measurements of each row")
    parser.add_argument("--days", type=int, default=30, help="days in each turn of row 6")
    parser.add_argument(
        "--history",
        type=int,
        default=1_000_000,
        help="materializations on record in rows 4, 8, 9, 14 and 15",
    )
    parser.add_argument("--runs", type=int, default=500, help="trivial runs in each turn of row 4")
    options = parser.parse_args()
    wanted = {int(row) for row in options.only.split(",") if row}
    times, days = options.times, options.days
    groups: list[tuple[set[int], Callable[[], Iterator[Figure]]]] = [
        ({11, 12, 13}, lambda: arithmetic.measure(times)),
        ({6, 7, 18}, lambda: flights.measure(times, days)),
        ({8, 9}, lambda: layers.measure(options.history)),
        ({4}, lambda: trivial.measure(times, options.runs, options.history)),
        ({17}, lists.measure),
        ({20}, lambda: commands.measure(times)),
        (IN_DATABASE, lambda: database.measure(times, wanted or IN_DATABASE, options.history)),
    ]
    console = Console()
    figures: list[Figure] = []
    # On SIGTERM the process still removes folders, and prints the figures so far.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        for rows, measure in groups:
            if not wanted or rows & wanted:
                for figure in measure():
                    console.print(line(figure), soft_wrap=True)
                    figures.append(figure)
    finally:
        load = os.getloadavg()[0]
        console.print(f"load of the machine now: {load:.1f} on {os.cpu_count()} cores")
        show(console, [figure for figure in figures if not wanted or figure.row in wanted])


if __name__ == "__main__":
    main()

"""Starts the servers for measurements in this process, without workers."""

import os
import secrets
from collections.abc import Iterator

from bench.figures import Figure
from bench.running import BUNDLES, data_folder
from slicewise_server.stack import prepare
from slicewise_server.stack.process import scrubbed
from slicewise_server.stack.services import Services

_SERVERS = ("postgresql", "redis")
_OF_ALL_AGES = {14, 15, 19}


def measure(times: int, rows: set[int], history: int) -> Iterator[Figure]:
    """Start the database and the broker, create tables and account, and measure the rows.

    ``history`` is the number of materializations on record for rows 14 and 15.
    """
    with data_folder() as folder:
        services = Services(folder, env=scrubbed(os.environ))
        try:
            services.start(_SERVERS)
            password = secrets.token_urlsafe()
            os.environ |= {
                **services.environment(),
                "SLICEWISE_BUNDLES": f"bench={BUNDLES / 'minutes'}",
                "DJANGO_SUPERUSER_USERNAME": "admin",
                "DJANGO_SUPERUSER_PASSWORD": password,
                "LOG_LEVEL": "WARNING",
            }
            prepare.main()
            # Models can be imported only now: Django reads settings from the environment.
            import slicewise_server.wsgi  # noqa: F401  (loads and freezes what a web process does)
            from bench import bookkeeping, bundling

            if rows & {1, 2, 3, 5, 10}:
                yield from bookkeeping.measure(times, password)
            if 16 in rows:
                yield from bundling.measure(times)
            if rows & _OF_ALL_AGES:
                yield from _of_all_ages(times, rows, history)
        finally:
            services.stop()


def _of_all_ages(times: int, rows: set[int], history: int) -> Iterator[Figure]:
    """Measure the rows of an empty record, and again with materializations on record."""
    from bench import grids, overdue, ticks
    from bench.history import load

    if 14 in rows:
        grids.declare()
    if rows & {15, 19}:
        ticks.declare()
    if 19 in rows:
        overdue.declare()
    for age, record in enumerate(("an empty record", f"{history:,} materializations on record")):
        if age:
            load(history)
        if 14 in rows:
            yield from grids.measure(times, record)
        if 15 in rows:
            yield from ticks.measure(record, age)
        if 19 in rows:
            yield from overdue.measure(times, record)

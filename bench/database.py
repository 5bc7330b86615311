"""Starts the servers for what is measured in this process: no worker is beside them."""

import os
import secrets
from collections.abc import Iterator

from bench.figures import Figure
from bench.running import BUNDLES, data_folder
from slicewise_server.stack import prepare
from slicewise_server.stack.process import scrubbed
from slicewise_server.stack.services import Services

_SERVERS = ("postgresql", "redis")
_OF_ALL_AGES = {14, 15}


def measure(times: int, rows: set[int], history: int) -> Iterator[Figure]:
    """Start the database and the broker, make tables and account, and measure those rows.

    ``history`` is how many materializations are on record for rows 14 and 15.
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
            # Models can be imported only now: Django reads its settings from the environment.
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
    """What is measured on an empty record, and again with materializations on it."""
    from bench import grids, ticks
    from bench.history import load

    if 14 in rows:
        grids.declare()
    if 15 in rows:
        ticks.declare()
    for age, record in enumerate(("an empty record", f"{history:,} materializations on record")):
        if age:
            load(history)
        if 14 in rows:
            yield from grids.measure(times, record)
        if 15 in rows:
            yield from ticks.measure(record, age)

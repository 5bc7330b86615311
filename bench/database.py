"""Starts the servers for what is measured in this process: no worker is beside them."""

import os
import secrets
from collections.abc import Iterator

from bench.figures import Figure
from bench.running import BUNDLES, data_folder
from config.stack import Services, prepare
from config.stack.process import scrubbed

_SERVERS = ("postgresql", "redis")


def measure(times: int, rows: set[int], history: int) -> Iterator[Figure]:
    """Start the database and the broker, make tables and account, and measure those rows.

    ``history`` is how many materializations are on record for row 15.
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
            from bench import bookkeeping, bundling, ticks

            if rows & {1, 2, 3, 5, 10}:
                yield from bookkeeping.measure(times, password)
            if 16 in rows:
                yield from bundling.measure(times)
            if 15 in rows:
                yield from ticks.measure(history)
        finally:
            services.stop()

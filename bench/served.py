"""Pages that this process serves, on a database of the measurement: no worker runs beside."""

import gzip
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.figures import seconds
from bench.running import data_folder
from slicewise_server.stack import prepare
from slicewise_server.stack.process import scrubbed
from slicewise_server.stack.services import Services

if TYPE_CHECKING:
    from django.test import Client


@contextmanager
def prepared_database(**settings: str) -> Iterator[None]:
    """Start the database and the broker, and make tables and an account; settings are of this
    process, and may name bundles.
    """
    with data_folder() as folder:
        services = Services(folder, env=scrubbed(os.environ))
        try:
            services.start(("postgresql", "redis"))
            os.environ |= {
                **services.environment(),
                "STATIC_FOLDER": str(folder / "static"),
                "SLICEWISE_BUNDLES": "",
                "DJANGO_SUPERUSER_USERNAME": "admin",
                "DJANGO_SUPERUSER_PASSWORD": secrets.token_urlsafe(),
                "LOG_LEVEL": "WARNING",
                **settings,
            }
            prepare.main()
            import slicewise_server.wsgi  # noqa: F401  (loads and freezes what a web process does)

            yield
        finally:
            services.stop()


@contextmanager
def served() -> Iterator[str]:
    """Serve pages and static files in a thread of this process; yield the address."""
    from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler

    from slicewise_server.wsgi import application

    class Quiet(WSGIRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Write no line for each request."""

    server = ThreadedWSGIServer(("localhost", 0), Quiet)
    server.set_app(application)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_port}"
    finally:
        server.shutdown()


class ServerFigures(NamedTuple):
    """The work of the server for one page: the median of the times, bytes, and statements."""

    seconds: float
    bytes: int
    compressed_bytes: int
    statements: int


def server_figures(client: "Client", address: str, times: int) -> ServerFigures:
    """Measure an address without a browser. Raises ValueError for an answer other than 200."""
    from django.db import connection

    def ask() -> Any:
        answer = client.get(address)
        if answer.status_code != 200:
            raise ValueError(f"{address}: {answer.status_code}")
        return answer

    statements: list[str] = []

    def note(execute: Callable[..., Any], sql: str, *others: Any) -> Any:
        statements.append(sql)
        return execute(sql, *others)

    content = ask().content
    with connection.execute_wrapper(note):
        ask()
    took = median(seconds(ask) for _ in range(times))
    return ServerFigures(took, len(content), len(gzip.compress(content, 6)), len(statements))

"""The browser that tests start."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections
from playwright.sync_api import Browser, sync_playwright

from slicewise_server.stack.machine import find_chromium

# It ends a hang, and is no claim. Playwright waits 5 s for what is expected of a page. That is too
# short for a run on real workers where the machine is busy.
PATIENCE_MILLISECONDS = 120_000
# Nothing of the browser's own is to be looked up or downloaded.
QUIET = [
    *["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
    *["--disable-background-networking", "--disable-component-update", "--disable-sync"],
]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser, and close its test's connections to the database at its end.

    Playwright has an event loop in the test's thread, so that Django makes connections of their
    own for tests with a browser. A connection that was left open would be used by the next browser
    test, also when a test between the two has cut all connections.
    """
    executable = find_chromium(os.environ)
    if executable is None:
        raise FileNotFoundError("Install Chromium: pages are opened in it.")
    with sync_playwright() as playwright:
        # Nothing in the event loop awaits the database.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
        started = playwright.chromium.launch(executable_path=str(executable), args=QUIET)
        try:
            yield started
        finally:
            started.close()
            connections.close_all()

"""``python -m bench.pages``: every page on the huge catalogue of `tests.shots`.

5,000 assets, an asset of a million partitions with a backfill of all, 10,000 segments, and a run
with a log of 100 MB. For each page the server's time, the bytes, the number of statements, and the
time to usable in Chromium: the page is loaded, graphs are drawn, a frame is painted.
"""

import argparse
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from statistics import median
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console, JustifyMethod
from rich.table import Table

from bench.figures import duration, seconds
from bench.served import prepared_database, served, server_figures
from tests.browser import chromium
from tests.pages.opened_pages import opened
from tests.pages.page_list import ADMIN, PAGES, addresses
from tests.shots.catalogues import SETTINGS, fill

if TYPE_CHECKING:
    from django.test import Client
    from playwright.sync_api import Browser

_COLUMNS = ("page", "server", "bytes", "compressed", "statements", "usable in Chromium")
_PAINTED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def main() -> None:
    """Fill the catalogue, measure the pages, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.pages", description=__doc__)
    parser.add_argument("--times", type=int, default=5, help="how often each page is measured")
    parser.add_argument("--only", default="", help="pages whose address contains this text")
    parser.add_argument("--catalogue", choices=SETTINGS, default="huge")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    console = Console()
    with prepared_database(**SETTINGS[options.catalogue]):
        from accounts_app.models import User
        from bench.graph_catalogue import browser_client
        from tests.shots.heartbeats import keep_alive

        client, began = browser_client(), monotonic()
        things = fill(options.catalogue, User.objects.get(username="admin"))
        console.print(f"catalogue filled in {monotonic() - began:.0f} s")
        keep_alive()
        pages = [page for page in addresses({**PAGES, **ADMIN}, things) if options.only in page]
        table = Table(title=f"Pages, medians of {options.times}")
        for column in _COLUMNS:
            justify: JustifyMethod = "left" if column == "page" else "right"
            table.add_column(column, justify=justify, overflow="fold")
        for row in _measured(client, pages, options.times):
            # At once: the last pages may take minutes.
            console.print("  ".join(row), soft_wrap=True, highlight=False)
            table.add_row(*row)
    console.print(f"load of the machine now: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    console.print(table)


def _measured(client: "Client", pages: Sequence[str], times: int) -> Iterator[list[str]]:
    """Measure the pages one after the other, and yield the row of each; a page that does not
    answer 200 has an error.
    """
    with served() as home, chromium() as browser:
        for address in pages:
            try:
                figures = server_figures(client, address, times)
            except ValueError as error:
                yield [address, str(error).removeprefix(f"{address}: ")]
                continue
            session = client.cookies["sessionid"].value
            usable = median(_usable(browser, home, session, address) for _ in range(times))
            sizes = [f"{size / 1000:,.0f} kB" for size in figures[1:3]]
            statements = str(figures.statements)
            yield [address, duration(figures.seconds), *sizes, statements, duration(usable)]


def _usable(browser: "Browser", home: str, session: str, address: str) -> float:
    """Return the seconds until the page is painted, in a browser that has opened no other page."""
    context = browser.new_context(base_url=home, viewport={"width": 1400, "height": 900})
    context.add_cookies([{"name": "sessionid", "value": session, "url": home}])
    page = context.new_page()

    def open_page() -> None:
        opened(page, address)
        page.evaluate(_PAINTED)

    took = seconds(open_page)
    context.close()
    return took


if __name__ == "__main__":
    main()

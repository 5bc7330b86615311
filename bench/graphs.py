"""``python -m bench.graphs``: the asset graph with 5,000 assets.

For each address the server's time, the bytes, and the number of statements; then the time until
the graph can be used in Chromium: folded, with a group unfolded, and with 500 nodes.
"""

import argparse
import signal
import sys
from collections.abc import Callable, Iterator
from statistics import median
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from bench.figures import duration, seconds
from bench.served import ServerFigures, prepared_database, served, server_figures
from tests.browser import chromium

if TYPE_CHECKING:
    from django.test import Client
    from playwright.sync_api import Browser

_PAGE = "/assets/graph/all/"
_ADDRESSES = (
    _PAGE,
    "/api/v1/asset-graph/",
    "/api/v1/asset-graph/states/",
    "/api/v1/asset-graph/?asset=mart_02502&depth=2",
    "/assets/mart_02502/?tab=neighbours",
    "/assets/mart_00000/impact/?selection=2024-01-01..2024-01-31",
)
_DRAWN = "[data-drawn]:not(:has(svg[aria-busy]))"


def main() -> None:
    """Measure the pages of the graph, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.graphs", description=__doc__)
    parser.add_argument("--assets", type=int, default=5_000, help="number of declared assets")
    parser.add_argument("--times", type=int, default=5, help="number of measurements of each page")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    table = Table(title=f"The graph of {options.assets:,} assets, medians of {options.times}")
    for column in ("work", "time", "bytes", "compressed", "statements"):
        table.add_column(column, justify="left" if column == "work" else "right")
    with prepared_database():
        from bench.graph_catalogue import browser_client, declare

        declare(options.assets)
        client = browser_client()
        for address in _ADDRESSES:
            table.add_row(address, *_texts(server_figures(client, address, options.times)))
        with served() as home:
            for name, took in _in_chromium(client, home, options.times):
                table.add_row(name, took)
    Console().print(table)


def _texts(figures: ServerFigures) -> tuple[str, str, str, str]:
    return (
        duration(figures.seconds), f"{figures.bytes / 1000:,.0f} kB",
        f"{figures.compressed_bytes / 1000:,.0f} kB", str(figures.statements),
    )  # fmt: skip


def _in_chromium(client: "Client", home: str, times: int) -> Iterator[tuple[str, str]]:
    """Measure the time until the graph is drawn in Chromium, each time in a fresh context."""
    session = client.cookies["sessionid"].value
    with chromium() as browser:
        looks: dict[str, Callable[[Any], object]] = {
            "Chromium: folded": lambda page: None,
            "Chromium: then a group unfolded": lambda page: page.locator(".fold").first.click(),
            "Chromium: then 500 nodes": lambda page: page.get_by_role(
                "button", name="Unfold"
            ).click(),
        }
        for name, step in looks.items():
            opens = name.endswith("folded") and "then" not in name
            took = [_look(browser, home, session, step, opens=opens) for _ in range(times)]
            yield name, duration(median(took))


def _look(
    browser: "Browser", home: str, session: str, step: Callable[[Any], object], *, opens: bool
) -> float:
    """Measure the opening of the page, or a step on the open page."""
    context = browser.new_context(base_url=home, viewport={"width": 1400, "height": 900})
    context.add_cookies([{"name": "sessionid", "value": session, "url": home}])
    page = context.new_page()

    def open_page() -> None:
        page.goto(_PAGE)
        page.wait_for_selector(_DRAWN)

    def take_step() -> None:
        before = page.locator("[data-drawn]").get_attribute("data-drawn")
        step(page)
        page.wait_for_selector(f'{_DRAWN}:not([data-drawn="{before}"])')

    took = seconds(open_page)
    if not opens:
        took = seconds(take_step)
    context.close()
    return took


if __name__ == "__main__":
    main()

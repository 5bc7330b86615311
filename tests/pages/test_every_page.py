"""Every page in a real browser, one visit each: axe in both themes, on a wide screen and a phone;
nothing is cut at any width; no complaint, no failed request, no inline script or style.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page
from pytest_django.live_server_helper import LiveServer

from accounts_app.models import User
from tests.pages.filled_pages import filled_pages
from tests.pages.opened_pages import opened
from tests.pages.page_list import ADMIN, PAGES, SIGNED_OUT, addresses
from tests.pages.watched_page import PageWatch, inline_parts, watch

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
Scheme = Literal["light", "dark"]
EVERYTHING = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
# The rules that a theme can break; no other rule looks at colours.
COLOURS = ["color-contrast", "link-in-text-block"]
WIDE, PHONE = 1400, 390
# Every theme and width; the markup is the same in both themes, and is checked once at each width.
AXE_VIEWS: dict[int, tuple[tuple[Scheme, list[str]], ...]] = {
    WIDE: (("light", EVERYTHING), ("dark", COLOURS)),
    PHONE: (("dark", EVERYTHING), ("light", COLOURS)),
}
WIDTHS = (WIDE, 1200, 1100, 768, PHONE)
NOT_THERE = "/runs/999999999/"

# The arrow keys move the focus over all cells of a grid, and scroll to the cell.
WORKED_BY_ARROW_KEYS = ("scrollable-region-focusable", "section", " > .scroll")
# Parts of a page that are like the parts before: the first view alone looks at all of them.
ALIKE = {"/api/docs/": "section.card:nth-of-type(n + 9)"}
# What opens on a page by a click: the address, what is clicked, and what is waited for.
CLICKS = [
    ("/", "summary[title^='Menu']", ".sw-menu-items"),
    ("/assets/{asset}/", ".partition-grid td a", "#drawer-title"),
    ("/assets/graph/all/", "[data-node]:has(title)", "#graph-panel h2"),
    (
        "/backfills/new/?asset={asset}",
        "#downstream-graph summary",
        "[data-drawn] [role=checkbox]",
    ),
    ("/backfills/new/?asset=delays", "[aria-label='Pick a date: From']", ".flatpickr-day"),
]
# The script waits for the theme. No page has audio or video, for which axe would load files again.
_RUN_AXE = """async ([scheme, rules, alike]) => {
    while (document.documentElement.getAttribute("data-bs-theme") !== scheme) {
        await new Promise(requestAnimationFrame);
    }
    const options = { runOnly: rules, resultTypes: ["violations"], preload: false };
    return (await axe.run({ exclude: alike }, options)).violations;
}"""
# Elements that are wider than their room: the page itself, cards, lists and the navigation. The
# arrow keys scroll the parameters of the API.
_CUT = """() => [document.documentElement, ...document.querySelectorAll(
    '.card, .table-responsive:not([aria-label="Parameters"]), .sw-nav, .sw-bar')
].filter((element) => element.scrollWidth > element.clientWidth + 1).map((element) =>
    `${element.tagName} ${element.className}: ${element.scrollWidth} > ${element.clientWidth}`)"""


@dataclass
class Visitor:
    """A browser that looks at a page in every view, and collects all that is wrong."""

    page: Page
    watching: PageWatch

    def visit(self, address: str, clicked: str = "", awaited: str = "") -> None:
        """Open a page, click on the page if need be, and look at the page in every view."""
        self.watching.expect_status(404 if address == NOT_THERE else 200)
        self.page.set_viewport_size({"width": WIDE, "height": 900})
        self.page.emulate_media(color_scheme="light", reduced_motion="reduce")
        opened(self.page, address)
        if clicked:
            self.page.locator(clicked).first.click()
            self.page.locator(awaited).first.wait_for()
        place = f"{address} with {clicked}" if clicked else address
        for width in WIDTHS:
            self.page.set_viewport_size({"width": width, "height": 900})
            self.watching.complaints += [
                f"{place} at {width}: {fault}" for fault in self._faults(address, width)
            ]
        self.watching.read_answers()

    def _faults(self, address: str, width: int) -> Iterator[str]:
        for cut in self.page.evaluate(_CUT):
            yield f"cut: {cut}"
        alike = [[ALIKE[address]]] if address in ALIKE else []
        for scheme, rules in AXE_VIEWS.get(width, ()):
            self.page.emulate_media(color_scheme=scheme)
            is_first = width == WIDE and scheme == "light"
            violations = self.page.evaluate(_RUN_AXE, [scheme, rules, [] if is_first else alike])
            for rule in violations:
                faults = [_told(node) for node in rule["nodes"] if not _is_known(rule, node)]
                yield from (f"{scheme}: {rule['id']}: {fault}" for fault in faults)


def _told(node: dict[str, Any]) -> str:
    reasons = [check["message"] for check in (*node["any"], *node["all"], *node["none"])]
    return f"{node['target']}: {' '.join(reasons)}"


def _is_known(rule: dict[str, Any], node: dict[str, Any]) -> bool:
    name, start, end = WORKED_BY_ARROW_KEYS
    target = str(node["target"][0])
    return rule["id"] == name and target.startswith(start) and target.endswith(end)


def test_every_page_is_accessible_and_complete_at_each_width_and_in_both_themes(
    page: Page, vera: User, live_server: LiveServer
) -> None:
    visitor = Visitor(page, watch(page, live_server.url))
    page.context.add_init_script(AXE_SCRIPT)
    things = filled_pages(vera)
    for address in (*addresses(PAGES, things), *addresses(ADMIN, things)):
        visitor.visit(address)
    for template, clicked, awaited in CLICKS:
        visitor.visit(template.format_map(things), clicked, awaited)
    page.context.clear_cookies()
    for address in addresses(SIGNED_OUT, things):
        visitor.visit(address)
    visitor.watching.fail_if_any()


def test_inline_script_and_style_are_recognized() -> None:
    markup = (
        '<p style="color:red" onclick="x()">x</p><style>p{}</style><script>x()</script>'
        '<a href="javascript:x()">x</a>'
        '<script src="x.js"></script><script type="application/json">{}</script>'
    )
    assert inline_parts(markup) == [
        'inline style="color:red" of <p>',
        'inline onclick="x()" of <p>',
        "inline <style>",
        "inline <script>",
        'inline href="javascript:x()" of <a>',
    ]

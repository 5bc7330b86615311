"""Every page in a real browser, checked by axe in both themes, on a wide screen and a phone."""

from typing import Any, Literal

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, expect

from accounts_app.models import User
from tests.pages.filled_pages import filled_pages
from tests.pages.opened_pages import opened
from tests.pages.page_list import ADMIN, PAGES, SIGNED_OUT, addresses

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
EVERYTHING = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
# The rules that a theme can break; no other rule looks at colours.
COLOURS = ["color-contrast", "link-in-text-block"]
# Every theme and width; the markup is the same in both themes, and is checked once at each width.
VIEWS: list[tuple[int, Literal["light", "dark"], list[str]]] = [
    (1400, "light", EVERYTHING),
    (1400, "dark", COLOURS),
    (390, "dark", EVERYTHING),
    (390, "light", COLOURS),
]

# An index, a list, a form and a row that nobody changes: other pages of the admin site are alike.
_SOME_OF_ADMIN = {
    route: ADMIN[route]
    for route in (
        "admin/",
        "admin/assets_app/run/",
        "admin/accounts_app/user/add/",
        "admin/assets_app/asset/<path:object_id>/change/",
    )
}

# The arrow keys move the focus over all cells of a grid, and scroll to the cell.
WORKED_BY_ARROW_KEYS = ("scrollable-region-focusable", "section", " > .scroll")
# What opens on a page by a click: the address, what is clicked, and what is waited for.
CLICKS = [
    ("/", "summary[title^='Menu']", ".sw-menu-items"),
    ("/assets/flights/", ".partition-grid td a", "#drawer-title"),
    ("/assets/graph/all/", "[data-node]:has(title)", "#graph-panel h2"),
    ("/backfills/new/?asset=delays", "[aria-label='Pick a date: From']", ".flatpickr-day"),
]


def violations(page: Page, place: str) -> list[str]:
    """Return what axe finds on the page in both themes, at both widths."""
    page.evaluate(AXE_SCRIPT)
    found: list[str] = []
    for width, scheme, rules in VIEWS:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        expect(page.locator("html")).to_have_attribute("data-bs-theme", scheme)
        # No page has audio or video, for which axe would load files again.
        options = {"runOnly": rules, "resultTypes": ["violations"], "preload": False}
        for rule in page.evaluate("options => axe.run(options)", options)["violations"]:
            where = f"{place} at {width}, {scheme}: {rule['id']}"
            found += [
                f"{where}: {_told(node)}" for node in rule["nodes"] if not _is_known(rule, node)
            ]
    return found


def _told(node: dict[str, Any]) -> str:
    reasons = [check["message"] for check in (*node["any"], *node["all"], *node["none"])]
    return f"{node['target']}: {' '.join(reasons)}"


def _is_known(rule: dict[str, Any], node: dict[str, Any]) -> bool:
    name, start, end = WORKED_BY_ARROW_KEYS
    target = str(node["target"][0])
    return rule["id"] == name and target.startswith(start) and target.endswith(end)


def test_axe_finds_no_violation_on_any_page(page: Page, vera: User) -> None:
    found: list[str] = []
    things = filled_pages(vera)
    for address in (*addresses(PAGES, things), *addresses(_SOME_OF_ADMIN, things)):
        opened(page, address)
        found += violations(page, address)
    for address, clicked, awaited in CLICKS:
        page.set_viewport_size({"width": 1400, "height": 900})
        opened(page, address)
        page.locator(clicked).first.click()
        page.locator(awaited).first.wait_for()
        found += violations(page, f"{address} with {clicked}")
    page.context.clear_cookies()
    for address in addresses(SIGNED_OUT, things):
        opened(page, address)
        found += violations(page, address)
    assert not found, "\n".join(found)

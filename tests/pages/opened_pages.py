"""Pages that a real browser opens, complete with the parts that scripts draw."""

from playwright.sync_api import Page, Response, expect


def opened(page: Page, address: str) -> Response | None:
    """Open a page, and wait until graphs are drawn; return the answer of the server."""
    answer = page.goto(address)
    for graph in page.locator("svg.graph-canvas").all():
        expect(graph).not_to_have_attribute("aria-busy", "true")
    return answer

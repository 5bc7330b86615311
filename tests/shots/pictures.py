"""Pictures of pages in Chromium, and remarks about pages that are wrong at first sight."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, BrowserContext, Page

from tests.page_complaints import PageComplaints
from tests.pages.opened_pages import opened

Scheme = Literal["light", "dark"]
WIDTHS = (1400, 390)
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
# A page that is longer is cut: nobody looks at the rest.
_MOST_HEIGHT = 5000
# The time after which parts of the page that are loaded by htmx have been asked for.
_SETTLE_MILLISECONDS = 150
_TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth + 1"


@dataclass
class PicturedPage:
    """A page, the files of its pictures by view (``1400-light``), and remarks."""

    address: str
    pictures: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


class Photographer:
    """A browser that takes pictures of all pages of a server, in every view."""

    def __init__(self, browser: Browser, home: str, folder: Path) -> None:
        self._browser, self._home, self._folder = browser, home, folder

    def take(
        self, addresses: Sequence[str], session: str = "", *, before: Callable[[], None]
    ) -> Iterator[PicturedPage]:
        """Take the pictures of the pages, signed in with the session unless it is empty; ``before``
        is called before each page.
        """
        context = self._browser.new_context(base_url=self._home, reduced_motion="reduce")
        if session:
            context.add_cookies([{"name": "sessionid", "value": session, "url": self._home}])
        for address in addresses:
            before()
            yield self._take_page(context, address)
        context.close()

    def _take_page(self, context: BrowserContext, address: str) -> PicturedPage:
        pictured = PicturedPage(address)
        page = context.new_page()
        # A page that is not there is one of the pages.
        complaints = PageComplaints(self._home, expected_errors=(404,))
        complaints.listen(page)
        touch = context.new_cdp_session(page)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            # A phone has a finger: grids have a button that selects by tapping.
            touch.send("Emulation.setTouchEmulationEnabled", {"enabled": width == min(WIDTHS)})
            opened(page, address)
            _settle(page)
            if page.evaluate(_TOO_WIDE):
                pictured.remarks.append(f"wider than the window at {width}")
            for scheme in SCHEMES:
                page.emulate_media(color_scheme=scheme)
                name = f"{file_name(address)}-{width}-{scheme}.png"
                _shoot(page, self._folder / name, width)
                pictured.pictures[f"{width}-{scheme}"] = name
        page.close()
        pictured.remarks += dict.fromkeys(complaints.complaints)
        return pictured


def file_name(address: str) -> str:
    """Return a name of a file for the pictures of an address."""
    return re.sub(r"[^\w.=-]+", "_", address).strip("_")[:120] or "overview"


def _settle(page: Page) -> None:
    page.wait_for_timeout(_SETTLE_MILLISECONDS)
    page.wait_for_function("() => !document.querySelector('.htmx-request')")


def _shoot(page: Page, path: Path, width: int) -> None:
    height = page.evaluate("document.documentElement.scrollHeight")
    clip = {"x": 0, "y": 0, "width": width, "height": min(height, _MOST_HEIGHT)}
    page.screenshot(path=path, full_page=True, clip=clip)  # type: ignore[arg-type]

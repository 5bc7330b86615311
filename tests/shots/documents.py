"""``python -m tests.shots.documents``: write the pictures of the documents again."""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page

from bench.served import prepared_database, served
from tests.browser import chromium
from tests.pages.opened_pages import opened
from tests.pages.page_list import Things
from tests.shots.catalogues import SETTINGS, fill

_FOLDER = Path(__file__).resolve().parents[2] / "docs" / "images"
_WIDTH = 1180


def _nothing(_page: Page) -> None:
    """Leave the page as it has opened."""


@dataclass(frozen=True)
class Picture:
    """A picture of the documents: the page, a step on the page, and how much of it is shown."""

    name: str
    address: str
    height: int
    step: Callable[[Page], object] = _nothing


PICTURES = (
    Picture("overview", "/", 900),
    Picture("grid", "/assets/daily_delays/?zoom=year&at=2013-01-01", 885),
    Picture("graph", "/assets/graph/all/", 900),
    Picture("trigger", "/backfills/new/?{backfill_fields}", 900),
    Picture("run", "/runs/{failed_run}/", 900),
)


def main() -> None:
    """Take the pictures from the busy catalogue."""
    with prepared_database(**SETTINGS["busy"]):
        from accounts_app.models import User
        from bench.graph_catalogue import browser_client
        from tests.shots.heartbeats import keep_alive

        session = browser_client().cookies["sessionid"].value
        things = fill("busy", User.objects.get(username="admin"))
        with served() as home, chromium() as browser:
            context = browser.new_context(base_url=home, color_scheme="light")
            context.add_cookies([{"name": "sessionid", "value": session, "url": home}])
            page = context.new_page()
            for picture in PICTURES:
                keep_alive()
                _take(page, picture, things)


def _take(page: Page, picture: Picture, things: Things) -> None:
    """Write a picture as WebP, which Chromium's own protocol offers and Playwright does not."""
    page.set_viewport_size({"width": _WIDTH, "height": picture.height})
    opened(page, picture.address.format_map(things))
    picture.step(page)
    page.wait_for_timeout(1500)
    protocol = page.context.new_cdp_session(page)
    answer = protocol.send("Page.captureScreenshot", {"format": "webp", "quality": 76})
    (_FOLDER / f"{picture.name}.webp").write_bytes(base64.b64decode(answer["data"]))


if __name__ == "__main__":
    main()

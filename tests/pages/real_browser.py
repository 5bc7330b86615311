"""A real browser on the pages of the test server, signed in as a person."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.test import Client
from playwright.sync_api import ConsoleMessage, Page

from tests.browser import PATIENCE_MILLISECONDS, chromium


@contextmanager
def opened_page(
    address: str,
    signed_in: Client,
    *,
    script: bool = True,
    width: int = 1400,
    dark: bool = False,
    touch: bool = False,
) -> Iterator[Page]:
    """Open a browser with the session of a client; a complaint of a page fails the test.

    A complaint is an error of a script, or a line of errors on the console, such as a violation of
    the content security policy. A request to another host fails the test too.
    """
    with chromium() as started:
        context = started.new_context(
            base_url=address,
            viewport={"width": width, "height": 900},
            java_script_enabled=script,
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            has_touch=touch,
        )
        session = signed_in.cookies["sessionid"].value
        context.add_cookies([{"name": "sessionid", "value": session, "url": address}])
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MILLISECONDS)
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.extend(_complaint(message)))
        page.on("request", lambda sent: complaints.extend(_foreign(sent.url, address)))
        yield page
    assert complaints == []


def _complaint(message: ConsoleMessage) -> list[str]:
    return [message.text] if message.type == "error" else []


def _foreign(url: str, address: str) -> list[str]:
    is_own = url.startswith((address, "data:", "blob:"))
    return [] if is_own else [f"a request to another host: {url}"]

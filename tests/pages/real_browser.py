"""A real browser on the pages of the test server, signed in as a person."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.test import Client
from playwright.sync_api import Page

from tests.browser import PATIENCE_MILLISECONDS, chromium
from tests.page_complaints import PageComplaints


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
    """Open a browser with the session of a client; a complaint about a page fails the test."""
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
        complaints = PageComplaints(address)
        complaints.listen(page)
        yield page
    complaints.fail_if_any()

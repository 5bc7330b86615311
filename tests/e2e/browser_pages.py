"""A real browser on the pages of a whole stack, signed in."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page, expect

from slicewise_server.stack.stack import ADMIN, Stack
from tests.browser import PATIENCE_MILLISECONDS, chromium
from tests.page_complaints import PageComplaints

expect.set_options(timeout=PATIENCE_MILLISECONDS)


@contextmanager
def opened_browser(stack: Stack) -> Iterator[Page]:
    """Open a new browser on the sign-in page; a complaint about a page fails the test."""
    with chromium() as browser:
        page = browser.new_page(base_url=stack.web_url, viewport={"width": 1280, "height": 900})
        page.set_default_timeout(PATIENCE_MILLISECONDS)
        # A form that is filled in wrongly is answered with an error.
        complaints = PageComplaints(stack.web_url, expected_errors=range(400, 500))
        complaints.listen(page)
        page.goto("/")
        yield page
    complaints.fail_if_any()


def sign_in(page: Page, username: str, password: str) -> None:
    """Sign in as a person who then looks at the overview."""
    page.get_by_label("Username").fill(username)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def sign_in_as_admin(page: Page, stack: Stack) -> None:
    """Sign in as the administrator of the stack."""
    sign_in(page, ADMIN, stack.admin_password)


def says(page: Page, text: str) -> None:
    """Wait until a message of the page has the text."""
    expect(page.locator(".alert", has_text=text).first).to_be_visible()

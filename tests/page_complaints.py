"""Complaints about pages in a real browser: errors and warnings on the console, requests that fail
or go to another host, and answers that are errors.
"""

from collections.abc import Container
from dataclasses import dataclass, field

from playwright.sync_api import ConsoleMessage, Page, Request, Response

# A browser need not know each feature of a header; a form of Django may find its focus taken; and
# answers with an error are noted by their status.
_HARMLESS = ("Permissions-Policy header", "Autofocus processing", "Failed to load resource")


@dataclass
class PageComplaints:
    """The complaints about the pages below an address that a browser has opened so far."""

    home: str
    # The statuses of errors that the pages may be answered with.
    expected_errors: Container[int] = ()
    complaints: list[str] = field(default_factory=list)

    def listen(self, page: Page) -> None:
        """Collect the complaints about all that a page opens from now on."""
        page.on("pageerror", lambda error: self.complaints.append(f"{page.url}: {error}"))
        page.on("console", self.note_message)
        page.on("request", self.note_request)
        page.on("requestfailed", self.note_failure)
        page.on("response", self.note_answer)

    def note_message(self, message: ConsoleMessage) -> None:
        """Note a line on the console."""
        if not any(text in message.text for text in _HARMLESS):
            self.complaints.append(f"{message.location['url']}: {message.text}")

    def note_request(self, request: Request) -> None:
        """Note a request to another host."""
        if not request.url.startswith((self.home, "data:", "blob:")):
            self.complaints.append(f"request to another host: {request.url}")

    def note_failure(self, request: Request) -> None:
        """Note a request without an answer; the next page ends polls of the page before."""
        if request.failure != "net::ERR_ABORTED":
            self.complaints.append(f"{request.url}: {request.failure}")

    def note_answer(self, answer: Response) -> None:
        """Note the status of an answer that is an error."""
        if answer.status >= 400 and answer.status not in self.expected_errors:
            self.complaints.append(f"{answer.url}: status {answer.status}")

    def fail_if_any(self) -> None:
        """Fail the test if the browser has complained."""
        assert not self.complaints, "\n".join(self.complaints)

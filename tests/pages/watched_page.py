"""Complaints about pages in a real browser, and about answers without the content security policy
or with inline script or style.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlsplit

from playwright.sync_api import Error, Page, Response

from tests.page_complaints import PageComplaints

# Data blocks, which no browser runs.
_DATA_TYPES = {"application/json", "application/ld+json"}


@dataclass
class PageWatch(PageComplaints):
    """The complaints about the pages that a browser has opened so far, answers included."""

    _answers: list[Response] = field(default_factory=list)

    def expect_status(self, status: int) -> None:
        """Expect an answer of this status from now on, also where the status is an error."""
        self.expected_errors = (status,)

    def read_answers(self) -> None:
        """Check the answers since the last call, while their page is open."""
        for answer in self._answers:
            path = urlsplit(answer.url).path
            if path.startswith("/static/"):
                continue
            self.complaints += [f"{path}: {fault}" for fault in _policy_faults(answer)]
            if answer.headers.get("content-type", "").startswith("text/html") and answer.ok:
                self.complaints += [f"{path}: {fault}" for fault in inline_parts(_body(answer))]
        self._answers.clear()

    def note_answer(self, answer: Response) -> None:
        """Note the status of an answer that is an error; keep the answer for `read_answers`."""
        if answer.url.startswith(self.home):
            super().note_answer(answer)
            self._answers.append(answer)


def watch(page: Page, home: str) -> PageWatch:
    """Watch a page that shows addresses below ``home``."""
    watching = PageWatch(home)
    watching.listen(page)
    return watching


def _body(answer: Response) -> str:
    """Return the body; empty for an answer to the page before, which the browser has dropped."""
    try:
        return answer.text()
    except Error:
        return ""


def _policy_faults(answer: Response) -> list[str]:
    policy = answer.headers.get("content-security-policy", "")
    if "default-src 'self'" not in policy:
        return ["no content security policy"]
    return ["unsafe content security policy"] if "unsafe-" in policy else []


def inline_parts(markup: str) -> list[str]:
    """Return the scripts and styles that are parts of the markup, which the policy blocks."""
    parser = _InlineParts()
    parser.feed(markup)
    parser.close()
    return parser.inline_parts


class _InlineParts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.inline_parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        is_inline_script = (
            tag == "script" and "src" not in values and values.get("type") not in _DATA_TYPES
        )
        if tag == "style" or is_inline_script:
            self.inline_parts.append(f"inline <{tag}>")
        self.inline_parts += [
            f'inline {name}="{value}" of <{tag}>'
            for name, value in values.items()
            if name == "style" or name.startswith("on") or value.startswith("javascript:")
        ]

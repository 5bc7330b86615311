"""Pages as markup, in a form that does not depend on line breaks and indents of templates."""

import re

from django.test import Client


def page_at(browser: Client, address: str) -> str:
    """Return the markup of a page that the server answers with status 200."""
    answer = browser.get(address)
    assert answer.status_code == 200, address
    return answer.content.decode()


def compact(page: str) -> str:
    """Return the markup with single spaces, and none beside tags or at the end of a tag."""
    return re.sub(r" ?(<[^>]*?) ?(/?>) ?", r"\1\2", re.sub(r"\s+", " ", page))


def polled_address(text: str) -> str:
    """Return the address that a page polls."""
    match = re.search(r'hx-get="([^"]*version=[^"]*)"', text)
    assert match, text
    return match[1].replace("&amp;", "&")

"""Pages as markup, in a form that does not depend on line breaks and indents of templates."""

import re
from html import unescape

from django.test import Client


def page_at(browser: Client, address: str) -> str:
    """Return the markup of a page that the server answers with status 200."""
    answer = browser.get(address)
    assert answer.status_code == 200, address
    return answer.content.decode()


def compact(page: str) -> str:
    """Return the markup with single spaces, and none beside tags or at the end of a tag."""
    return re.sub(r" ?(<[^>]*?) ?(/?>) ?", r"\1\2", re.sub(r"\s+", " ", page))


def words_of(page: str) -> str:
    """Return the words of a page or of a part, without the markup and with single spaces."""
    return " ".join(re.sub("<[^>]*>", " ", page.replace("<wbr>", "")).split())


def polled_address(text: str, part: str = "version=") -> str:
    """Return the first address that a page polls and that has a part."""
    match = re.search(rf'hx-get="([^"]*{part}[^"]*)"', text)
    assert match, text
    return unescape(match[1])


def polled_grid(text: str) -> str:
    """Return the address that the grid of a page polls."""
    return polled_address(text, "fragment=grid")


def cell(text: str, name: str) -> tuple[str, str]:
    """Return the classes and the name of the cell of a grid whose name begins so."""
    classes, label = re.findall(
        rf'<a class="([^"]*)" href="[^"]*" aria-label="({name}:[^"]*)"', text
    )[0]
    return classes, label


def selected(text: str) -> str:
    """Return the text in the field of the selection of a grid."""
    return unescape(re.findall(r'name="selection"\s+value="([^"]*)"', text)[0])

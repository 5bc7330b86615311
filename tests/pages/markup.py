"""Pages in one form, so that tests do not depend on line breaks and indents of templates."""

import re


def compact(page: str) -> str:
    """Return the markup with one space for each stretch of whitespace, and none beside tags or at
    the end of a tag.
    """
    return re.sub(r" ?(<[^>]*?) ?(/?>) ?", r"\1\2", re.sub(r"\s+", " ", page))


def polled_address(text: str) -> str:
    """The address that a page asks again."""
    found = re.search(r'hx-get="([^"]*version=[^"]*)"', text)
    assert found, text
    return found[1].replace("&amp;", "&")

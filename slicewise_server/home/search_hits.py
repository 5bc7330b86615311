"""The results of the search: links with further words, in sections."""

from typing import NamedTuple

MOST_HITS = 10


class Hit(NamedTuple):
    """A result: the text of the link, the address, and further words."""

    label: str
    url: str
    note: str = ""


class Section(NamedTuple):
    """The results of one kind, and the address of the list with all of these."""

    title: str
    hits: list[Hit]
    all_url: str = ""
